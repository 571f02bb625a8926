// Adds the plants of an NDJSON file to a table of its own, with no checks: FILE DATABASE.
import { readFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'

const batchRows = 2500

const [file, database] = process.argv.slice(2)
const db = new DatabaseSync(database)
db.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL')
db.exec('CREATE TABLE rows (name TEXT NOT NULL, tag TEXT NOT NULL)')
const insert = db.prepare('INSERT INTO rows VALUES (?, ?)')
const lines = readFileSync(file, 'utf8').split('\n').slice(0, -1)
for (let start = 0; start < lines.length; start += batchRows) {
  db.exec('BEGIN')
  for (const line of lines.slice(start, start + batchRows)) {
    const { name, tag } = JSON.parse(line)
    insert.run(name, tag)
  }
  db.exec('COMMIT')
}
db.close()
