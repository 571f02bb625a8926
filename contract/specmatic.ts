// Specmatic makes requests of its own from the document, right ones and wrong ones, and judges the service's answers.
import { readFileSync, writeFileSync } from 'node:fs'
import { parse } from 'yaml'
import { folder, type Outcome, run, type Subject, versionOf } from './tools.ts'

/** Failures that are none: what the request was said to be, how it was answered, and why that is right. */
const explanations: [request: RegExp, status: number, reason: string][] = [
  [/-> 200 .*'after'/, 400, 'no store has made this cursor, and a made-up one is refused whatever its form'],
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

/** Needs Java; without it the row says so. It can resolve no name but this machine's, so it calls nobody. */
export async function checkWithSpecmatic({ file, url, token, directory }: Subject): Promise<Outcome> {
  const outcome = { tool: 'Specmatic', version: versionOf('specmatic'), cases: 0, failures: [], explained: 0 }
  const java = await run(['java', '-version']).catch(() => undefined)
  if (java?.code !== 0) return { ...outcome, version: 'left out: there is no Java' }
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

/** Specmatic takes `\\x7F` for an x, a 7 and an F when it makes up texts, so its copy has the characters themselves. */
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
