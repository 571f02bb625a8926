// Exports for tests: made in this process, and put into another store.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import pino from 'pino'
import type { Test } from 'tap'
import { exportToFile } from '../../src/maintenance/export/export-plants.ts'
import { readName } from '../../src/maintenance/export/formats.ts'
import { importPlants } from '../../src/maintenance/import/import-plants.ts'
import type { StoreView } from '../../src/store/engine.ts'
import { openView } from '../../src/store/engines.ts'
import { createDirectory } from './engines.ts'
import { openStore } from './sql-store.ts'

/** Opens the store at a URL to be read only; it closes when the test ends. */
export async function view(t: Test, url: string): Promise<StoreView> {
  const opened = await openView(url)
  t.teardown(() => opened.close())
  return opened
}

/** Exports a whole store into a new file of this name; resolves to its path. */
export async function exportAll(t: Test, url: string, name: string, more = {}): Promise<string> {
  const path = join(createDirectory(t), name)
  const opened = await view(t, url)
  const { format = 'ndjson', compression } = readName(name)
  const head = await opened.head()
  await exportToFile(path, opened, { format, compression, withId: true, after: 0, head, ...more })
  return path
}

/** What an export into a file of this name holds. */
export async function readExport(t: Test, url: string, name: string, more = {}): Promise<Buffer> {
  return readFileSync(await exportAll(t, url, name, more))
}

/** Imports a file, all of whose records must be plants. */
export async function importAll(t: Test, url: string, path: string): Promise<void> {
  const result = await importPlants({
    path,
    signal: new AbortController().signal,
    openStore: () => openStore(url, { logger: pino({ level: 'silent' }) }),
    say: (line) => t.comment(line),
    batchPlants: 2500,
    patienceMs: 0,
  })
  t.equal(result.rejected, 0)
}
