// npm run contract: five third-party tools check the document and the running service. Redocly checks the structure of
// the document; Spectral applies the OWASP rules; Specmatic checks the responses to requests that it generates from the
// document; openapi-typescript and hey-api generate clients and validators, which must compile and work.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { fileURLToPath } from 'node:url'
import { heyApi, makeGeneratorCheck, openapiTypescript } from './generators.ts'
import { installTools } from './install.ts'
import { checkWithRedocly, checkWithSpectral } from './lint.ts'
import { checkWithSpecmatic } from './specmatic.ts'
import { type Outcome, type Subject, startServer, stop } from './tools.ts'

type Check = (subject: Subject) => Promise<Outcome>

const checks: [name: string, check: Check][] = [
  ['Redocly', checkWithRedocly],
  ['Spectral', checkWithSpectral],
  ['Specmatic', checkWithSpecmatic],
  ['openapi-typescript', makeGeneratorCheck(openapiTypescript)],
  ['hey-api', makeGeneratorCheck(heyApi)],
]

const root = fileURLToPath(new URL('..', import.meta.url))
const token = 'a-token-for-checks'

/** Runs a check on a new service with an empty store. */
async function runCheck(check: Check): Promise<Outcome> {
  const directory = mkdtempSync(`${tmpdir()}/plant-store-contract-`)
  const { match, child } = await startServer([process.execPath, `${root}src/cli.ts`, 'serve'], {
    ready: /listening on (\S+)/,
    env: {
      PORT: '0',
      ACCESS_TOKENS: token,
      DATABASE_URL: `file:${directory}/plants.db`,
      LOG_LEVEL: 'silent',
    },
  })
  try {
    return await check({ url: match[1] as string, token, file: `${root}openapi.yaml`, directory })
  } finally {
    await stop(child)
    rmSync(directory, { recursive: true })
  }
}

function printTable(outcomes: Outcome[]): void {
  const rows = outcomes.map(({ tool, version, cases, failures, explained }) =>
    [tool, version, cases, failures.length, explained].map(String),
  )
  const table = [['Tool', 'Version', 'Cases', 'Failures', 'Explained'], ...rows]
  const widths = table[0]?.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0))) ?? []
  for (const row of table)
    console.log(
      row
        .map((cell, column) => cell.padEnd(widths[column] ?? 0))
        .join('  ')
        .trimEnd(),
    )
}

await installTools()
const chosen = process.argv.slice(2)
const isChosen = (name: string) => chosen.some((word) => name.toLowerCase().includes(word.toLowerCase()))
const wanted = checks.filter(([name]) => chosen.length === 0 || isChosen(name))
// Concurrently: most of them use one processor.
const outcomes = await Promise.all(
  wanted.map(async ([name, check]) => {
    const outcome = await runCheck(check)
    console.log([`${name}: done`, ...outcome.failures].join('\n  '))
    return outcome
  }),
)
console.log()
printTable(outcomes)
if (outcomes.some(({ failures }) => failures.length > 0)) process.exitCode = 1
