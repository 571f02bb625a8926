// Inserts the plants of an NDJSON file into a table of SQLite: parsed before, in one transaction, with no checks. Prints
// how many milliseconds the transaction took, and how much processor time.
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

const [input, output] = process.argv.slice(2) as [string, string]
const lines = readFileSync(input, 'utf8').split('\n').slice(0, -1)
const rows = lines.map((line) => JSON.parse(line) as { name: string; tag: string })
const db = new DatabaseSync(output)
db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
db.exec('CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT NOT NULL)')
const insert = db.prepare('INSERT INTO plants (name, tag) VALUES (?, ?)')
const [start, cpu] = [performance.now(), process.cpuUsage()]
db.exec('BEGIN')
for (const { name, tag } of rows) insert.run(name, tag)
db.exec('COMMIT')
const { user, system } = process.cpuUsage(cpu)
console.log(JSON.stringify({ ms: performance.now() - start, cpuUs: user + system }))
db.close()
