// The coverage of the contract: each documented answer, with each of its headers, was seen by a test of the run.
import { globSync, readFileSync, rmSync } from 'node:fs'
import { directory, nameSeen, readDocument, resolve } from '../support/contract.ts'

type Row = { operation: string; status: string; headers: string[] }

function listDocumented(): Row[] {
  const rows: Row[] = []
  for (const [path, item] of Object.entries<object>(readDocument().paths))
    for (const [method, operation] of Object.entries<{ responses?: object }>(item as never))
      for (const status of Object.keys(operation.responses ?? {})) {
        const place = `/paths/${path.replaceAll('/', '~1')}/${method}/responses/${status}`
        const headers = Object.keys(resolve(place).node.headers ?? {})
        rows.push({ operation: `${method.toUpperCase()} ${path}`, status, headers })
      }
  return rows
}

function readSeen(): Set<string> {
  const files = globSync('seen-*.json', { cwd: directory })
  return new Set(files.flatMap((file) => JSON.parse(readFileSync(`${directory}/${file}`, 'utf8'))))
}

/** Before a run. */
export function forgetContractCoverage(): void {
  rmSync(directory, { recursive: true, force: true })
}

/** After a whole run: names what no test has provoked. False when there is anything. */
export function checkContractCoverage(): boolean {
  const seen = readSeen()
  const names = listDocumented().flatMap(({ operation, status, headers }) =>
    ['', ...headers].map((header) => nameSeen(operation, status, header)),
  )
  const missing = names.filter((name) => !seen.has(name))
  for (const name of missing) console.log(`never seen: ${name}`)
  console.log(
    `the tests have seen ${names.length - missing.length} of ${names.length} answers and headers of the contract`,
  )
  return missing.length === 0
}
