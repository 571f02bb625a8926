// Imports an input. With `strict` a first pass checks all of it before anything is added.
import { randomUUID } from 'node:crypto'
import { rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { type Entry, type Outcome, type Store, sameItem } from '../../store/store.ts'
import { addRecords } from './add-records.ts'
import type { ImportOptions, ImportResult } from './import-options.ts'
import { beginning, ImportProgress } from './import-progress.ts'
import { type Input, keepCopy, nameOf, openInput } from './input.ts'
import { InputError } from './input-error.ts'
import { openRecords } from './records.ts'
import { Rejects } from './rejects.ts'

/** `result`: the counts so far; `file`: a copy of the input; `isLook`: the store is compared, and keeps nothing. */
type Pass = { result: ImportResult; file?: string | undefined; isLook?: boolean }

/**
 * Imports the plants of an input. Throws InputError when the rest of the input cannot be read, StoreRefused or
 * StoreUnavailable when the store does not take it; committed batches stay, and the import can be resumed.
 */
export async function importPlants(options: ImportOptions): Promise<ImportResult> {
  const { strict, dryRun, signal, result = makeResult() } = options
  try {
    await (strict && !dryRun ? importAllOrNothing(options, result) : importOnce(options, { result }))
    return result
  } catch (error) {
    throw signal.aborted ? signal.reason : error
  }
}

/** Counts of nothing yet. */
export function makeResult(): ImportResult {
  return { records: 0, skipped: 0, added: 0, replayed: 0, conflict: 0, rejected: 0 }
}

async function importAllOrNothing(options: ImportOptions, result: ImportResult): Promise<void> {
  const { path, signal } = options
  const copy = join(tmpdir(), `plant-store-${randomUUID()}`)
  const removeCopy = () => rmSync(copy, { force: true })
  signal.addEventListener('abort', removeCopy, { once: true })
  try {
    const file = (await keepCopy(path, copy, signal)) ? copy : undefined
    const look = makeResult()
    await importOnce(options, { result: look, file, isLook: true }).finally(() => {
      result.rejected = look.rejected
      result.conflict = look.conflict
    })
    if (look.rejected + look.conflict > 0)
      throw new InputError('nothing was added, as --strict adds all or nothing')
    await importOnce(options, { result, file })
  } finally {
    removeCopy()
  }
}

async function importOnce(options: ImportOptions, pass: Pass): Promise<void> {
  const { path, signal } = options
  let input: Input | undefined
  try {
    input = await openInput(pass.file ?? path, signal)
    await importInput(options, pass, input)
  } catch (error) {
    throw error instanceof InputError ? error.in(nameOf(path)) : error
  } finally {
    input?.close()
  }
}

async function importInput(options: ImportOptions, { result, isLook }: Pass, input: Input): Promise<void> {
  const records = await openRecords(input, options)
  const store = options.dryRun ? undefined : await options.openStore()
  const dryLog = isLook || !store ? makeDryLog(store) : undefined
  try {
    const progress = store && !dryLog ? new ImportProgress(store.sql, options.path, records) : undefined
    const start = (await progress?.findStart(options)) ?? beginning
    const rejects = new Rejects(options, records.header)
    try {
      rejects.open(start)
      await progress?.claim(start)
      const log = dryLog ?? (store as Store).log
      await addRecords({ ...options, result, input, records, rejects, log, progress, start })
    } finally {
      rejects.close()
    }
  } finally {
    dryLog?.close()
    await store?.close()
  }
}

/**
 * Makes a log that keeps nothing, for an input that is only checked. Ids are compared with those of earlier records, and
 * of the store, if there is one.
 */
function makeDryLog(store: Store | undefined) {
  // Items with an id, in a temporary file that SQLite removes by itself.
  const items = new DatabaseSync('')
  items.exec('CREATE TABLE items (id INTEGER PRIMARY KEY, item TEXT NOT NULL)')
  const insert = items.prepare('INSERT INTO items VALUES (?, ?) ON CONFLICT DO NOTHING')
  const select = items.prepare('SELECT item FROM items WHERE id = ?')
  const judge = ({ id, item }: Entry): Outcome => {
    if (id === undefined || insert.run(id, item).changes === 1) return 'added'
    return sameItem(String(select.get(id)?.item), item) ? 'replayed' : 'conflict'
  }
  return {
    async append(entries: Entry[]) {
      // PostgreSQL refuses an empty list; NULL equals no id.
      const ids = ['NULL', ...entries.flatMap(({ id }) => id ?? [])]
      const stored = await store?.sql.select(`SELECT id, item FROM plants WHERE id IN (${ids})`)
      for (const { id, item } of stored ?? []) insert.run(Number(id), String(item))
      return entries.map(judge)
    },
    close: () => items.close(),
  }
}
