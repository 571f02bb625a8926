// Linters of the document: Redocly, and Spectral with the rules of OWASP. What we do otherwise is in spectral.yaml.
import { writeFileSync } from 'node:fs'
import { bin, folder, type Outcome, run, type Subject, versionOf } from './tools.ts'

/** The document, and its rendition for tools that stop at OpenAPI 3.0. */
async function documents({ file, url, directory }: Subject): Promise<string[]> {
  const older = `${directory}/openapi-3.0.json`
  writeFileSync(older, await (await fetch(`${url}/openapi-3.0.json`)).text())
  return [file, older]
}

/** Redocly's strictest set of recommendations, without an exception. */
export async function checkWithRedocly(subject: Subject): Promise<Outcome> {
  const failures: string[] = []
  const files = await documents(subject)
  for (const file of files) {
    const { stdout, stderr } = await run([
      bin('redocly'),
      ...['lint', file, '--extends', 'recommended-strict', '--format', 'json'],
    ])
    if (!stdout.includes('"problems"')) throw new Error(`Redocly did not lint: ${stderr}`)
    const { problems } = JSON.parse(stdout.slice(stdout.indexOf('{')))
    for (const { ruleId, location, message } of problems as Problem[])
      failures.push(`${ruleId} ${location[0].pointer}: ${message}`)
  }
  const version = versionOf('@redocly/cli')
  return { tool: 'Redocly (3.1, 3.0)', version, cases: files.length, failures, explained: 0 }
}

type Problem = { ruleId: string; message: string; location: [{ pointer: string }] }
type Finding = { code: string; message: string; path: string[] }

/** Spectral with our explanations; how many findings they answer is counted by a run without them. */
export async function checkWithSpectral(subject: Subject): Promise<Outcome> {
  const files = await documents(subject)
  const find = async (ruleset: string) =>
    (await Promise.all(files.map((file) => findWithSpectral(file, ruleset)))).flat()
  const left = await find('spectral.yaml')
  const all = await find('spectral-all.yaml')
  return {
    tool: 'Spectral (oas, OWASP; 3.1, 3.0)',
    version: versionOf('@stoplight/spectral-cli'),
    cases: files.length,
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
