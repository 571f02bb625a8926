// Specmatic generates valid and invalid requests from the document, and checks the responses of the service.
import { readFileSync, writeFileSync } from 'node:fs'
import { parse } from 'yaml'
import { folder, type Outcome, run, type Subject, versionOf } from './tools.ts'

/** Failures that Specmatic reports for correct behaviour: the request, the status of the response, and the reason. */
const explanations: [request: RegExp, status: number, reason: string][] = [
  [/-> 200 .*'after'/, 400, 'a made-up cursor is refused, even if it has the right form'],
  [
    /POST .* -> 200 .*\bid is set/,
    409,
    'an earlier request added another plant with the same bound as its id',
  ],
]

const settings = `version: 2
disable_telemetry: true
test:
  resiliencyTests:
    enable: all
`

/**
 * Requires Java; without it, the check is skipped, and the table shows that. Specmatic can resolve only localhost, so
 * it cannot connect to other hosts.
 */
export async function checkWithSpecmatic({ file, url, token, directory }: Subject): Promise<Outcome> {
  const outcome = { tool: 'Specmatic', version: versionOf('specmatic'), cases: 0, failures: [], explained: 0 }
  const java = await run(['java', '-version']).catch(() => undefined)
  if (java?.code !== 0) return { ...outcome, version: 'skipped: Java is not installed' }
  writeFileSync(`${directory}/specmatic.yaml`, settings)
  writeFileSync(`${directory}/hosts`, '127.0.0.1 localhost\n')
  writeFileSync(`${directory}/openapi.json`, spellOut(readFileSync(file, 'utf8')))
  const options = [`-Djdk.net.hosts.file=${directory}/hosts`, `-Duser.home=${directory}`]
  const jar = `${folder}node_modules/specmatic/specmatic.jar`
  const { stdout } = await run(
    [
      'java',
      ...options,
      '-jar',
      jar,
      'test',
      'openapi.json',
      `--testBaseURL=${url}`,
      '--junitReportDir=report',
    ],
    { cwd: directory, env: { bearer: token } },
  )
  const tests = readReport(`${directory}/report/TEST-junit-jupiter.xml`)
  if (tests.length === 0 || !stdout.includes('Tests run:'))
    throw new Error(`Specmatic ran no test: ${stdout}`)
  const failed = tests.filter(({ failure }) => failure !== undefined)
  const failures = failed
    .filter((test) => !isExplained(test))
    .map(({ name, failure }) => `${name}: ${failure}`)
  return { ...outcome, cases: tests.length, failures, explained: failed.length - failures.length }
}

/** Specmatic reads `\\x7F` as an x, a 7 and an F when it generates strings, so its copy has the literal characters. */
function spellOut(document: string): string {
  const tree = parse(document, (key, value) =>
    key === 'pattern' && typeof value === 'string'
      ? value.replace(/\\x([0-9A-F]{2})/g, (_, hex) => String.fromCharCode(Number.parseInt(hex, 16)))
      : value,
  )
  const spell = (character: string) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`
  return JSON.stringify(tree).replace(/[^ -~]/g, spell)
}

type TestCase = { name: string; failure: string | undefined; status: number }

function readReport(path: string): TestCase[] {
  const cases = readFileSync(path, 'utf8').split('<testcase ').slice(1)
  return cases.map((text) => {
    const name = /(?:^| )name="([^"]*)"/.exec(text)?.[1] ?? ''
    const [failure] = /<(?:failure|error|skipped)\b[^>]*/.exec(text) ?? []
    const status = /(?:response contained status|but received) (\d+)/.exec(text)?.[1]
    return { name: decode(name).replace(/^.*contractTest\(\) > /, ''), failure, status: Number(status) }
  })
}

const decode = (text: string) =>
  text.replaceAll('&gt;', '>').replaceAll('&lt;', '<').replaceAll('&apos;', "'").replaceAll('&amp;', '&')

const isExplained = ({ name, status }: TestCase) =>
  explanations.some(([request, answered]) => request.test(name) && status === answered)
