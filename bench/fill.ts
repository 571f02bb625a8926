// Databases with plants in them, made without HTTP.
import { writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import pino from 'pino'
import { openStore } from '../src/store/open.ts'
import { makePlant } from './load/plants.ts'

const batchPlants = 20_000

/** Fills a new store through its log. */
export async function fillStore(
  url: string,
  count: number,
  onProgress: (done: number) => void = () => {},
): Promise<void> {
  const store = await openStore(url, { logger: pino({ level: 'error' }, pino.destination(2)) })
  for (let from = 0; from < count; from += batchPlants) {
    const length = Math.min(batchPlants, count - from)
    await store.log.append(
      Array.from({ length }, (_, i) => ({ item: JSON.stringify(makePlant(from + i)), id: undefined })),
    )
    onProgress(from + length)
  }
  await store.close()
}

/** Fills the table of the Express and Hono peers. */
export function fillTable(path: string, count: number): void {
  const db = new DatabaseSync(path)
  db.exec('CREATE TABLE plants (id INTEGER PRIMARY KEY, name TEXT NOT NULL, tag TEXT NOT NULL); BEGIN')
  const insert = db.prepare('INSERT INTO plants (name, tag) VALUES (?, ?)')
  for (let n = 0; n < count; n++) {
    const { name, tag } = makePlant(n)
    insert.run(name, tag)
  }
  db.exec('COMMIT')
  db.close()
}

/** Writes the file of json-server. */
export function fillJson(path: string, count: number): void {
  const plants = Array.from({ length: count }, (_, n) => ({ id: n + 1, ...makePlant(n) }))
  writeFileSync(path, JSON.stringify({ plants }))
}
