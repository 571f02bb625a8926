// Linters of the document: Redocly, and Spectral with the OWASP rules. The exceptions are in spectral.yaml.
import { bin, folder, type Outcome, run, type Subject, versionOf } from './tools.ts'

/** Redocly's strictest set of rules, without exceptions. */
export async function checkWithRedocly({ file }: Subject): Promise<Outcome> {
  const { stdout, stderr } = await run([
    bin('redocly'),
    ...['lint', file, '--extends', 'recommended-strict', '--format', 'json'],
  ])
  if (!stdout.includes('"problems"')) throw new Error(`Redocly did not lint: ${stderr}`)
  const { problems } = JSON.parse(stdout.slice(stdout.indexOf('{')))
  const failures = (problems as Problem[]).map(
    ({ ruleId, location, message }) => `${ruleId} ${location[0].pointer}: ${message}`,
  )
  return { tool: 'Redocly', version: versionOf('@redocly/cli'), cases: 1, failures, explained: 0 }
}

type Problem = { ruleId: string; message: string; location: [{ pointer: string }] }
type Finding = { code: string; message: string; path: string[] }

/** Runs Spectral with our exceptions, and without them to count the findings that they cover. */
export async function checkWithSpectral({ file }: Subject): Promise<Outcome> {
  const left = await findWithSpectral(file, 'spectral.yaml')
  const all = await findWithSpectral(file, 'spectral-all.yaml')
  return {
    tool: 'Spectral (oas, OWASP)',
    version: versionOf('@stoplight/spectral-cli'),
    cases: 1,
    failures: left.map(({ code, message, path }) => `${code} ${path.join('.')}: ${message}`),
    explained: all.length - left.length,
  }
}

async function findWithSpectral(file: string, ruleset: string): Promise<Finding[]> {
  const { stdout, stderr } = await run([
    bin('spectral'),
    ...['lint', file, '--ruleset', `${folder}${ruleset}`, '--format', 'json', '--quiet'],
  ])
  if (!stdout.startsWith('[')) throw new Error(`Spectral did not lint: ${stdout}${stderr}`)
  return JSON.parse(stdout)
}
