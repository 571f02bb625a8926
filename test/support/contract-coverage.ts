// node package/node.js test/support/contract-coverage.ts, after a whole run: fails if the contract has an answer, or a header
// of one, that no test has seen.
import { globSync, readFileSync } from 'node:fs'
import { directory, nameSeen, readDocument, resolve } from './contract.ts'

const documented = Object.entries<object>(readDocument().paths).flatMap(([path, item]) =>
  Object.entries<{ responses?: object }>(item as never).flatMap(([method, { responses = {} }]) =>
    Object.keys(responses).flatMap((status) => {
      const place = `/paths/${path.replaceAll('/', '~1')}/${method}/responses/${status}`
      const headers = Object.keys(resolve(place).node.headers ?? {})
      return ['', ...headers].map((header) => nameSeen(`${method.toUpperCase()} ${path}`, status, header))
    }),
  ),
)
const files = globSync('seen-*.json', { cwd: directory })
const seen = new Set<string>(
  files.flatMap((file) => JSON.parse(readFileSync(`${directory}/${file}`, 'utf8'))),
)
const missing = documented.filter((name) => !seen.has(name))
for (const name of missing) console.error(`never seen: ${name}`)
console.log(
  `${documented.length - missing.length} of ${documented.length} answers and headers of the contract seen`,
)
if (missing.length > 0) process.exitCode = 1
