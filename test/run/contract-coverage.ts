// The coverage of the contract: which documented answers, with which of their headers, the tests have seen. It runs
// after the tests (npm test) and fails when there is one that no test provoked. With `--clear` it forgets what was seen.
import { globSync, readFileSync, rmSync } from 'node:fs'
import { directory, nameSeen, readDocument, resolve } from './contract.ts'

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

function report(): boolean {
  const seen = readSeen()
  let [all, missing] = [0, 0]
  const look = ({ operation, status }: Row, header?: string) => {
    const isSeen = seen.has(nameSeen(operation, status, header))
    all++
    if (!isSeen) missing++
    return `${header ?? 'answer'}${isSeen ? '' : ' NEVER SEEN'}`
  }
  for (const row of listDocumented()) {
    const parts = [look(row), ...row.headers.map((header) => look(row, header))]
    console.log(`${row.operation.padEnd(14)} ${row.status}  ${parts.join(', ')}`)
  }
  console.log(`the tests have seen ${all - missing} of ${all} answers and headers of the contract`)
  return missing === 0
}

if (process.argv.includes('--clear')) rmSync(directory, { recursive: true, force: true })
else process.exitCode = report() ? 0 : 1
