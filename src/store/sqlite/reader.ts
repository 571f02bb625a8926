// The reading connection of an HTTP thread: a read takes microseconds.
import { DatabaseSync } from 'node:sqlite'
import type { Logger } from 'pino'
import { segmentPlants, sqliteReadLockMs } from '../../limits.ts'
import { Outage } from '../../logging/outage.ts'
import type { Head } from '../engine.ts'
import { Epochs, latestEpoch, ownerOf } from '../epochs.ts'
import { StoreUnavailable } from '../errors.ts'
import { findSources } from '../sql/segments.ts'
import type { Row, Value } from '../sql/sql.ts'
import { codeOf } from './errors.ts'
import type { OpenFiles } from './files/files.ts'
import { named } from './sqlite-dialect.ts'

const headQuery = `SELECT coalesce(max(position), 0), coalesce(${latestEpoch}, '') FROM plants`
/** Query for the head with all epochs, so that both are of one moment. */
const epochsQuery = `SELECT coalesce(max(position), 0),
  (SELECT json_group_array(json_object('epoch', epoch, 'start', start) ORDER BY number) FROM epochs) FROM plants`
/** Queries for items. A range of a primary key is read, and so joined, in its order. */
const segmentsQuery = `
  ${selectItems(`group_concat(items, ',')`, segmentPlants)} FROM segments WHERE last > ?1 AND last <= ?2`
const plantsQuery = `
  ${selectItems(`group_concat(item, ',')`, 1)} FROM plants WHERE position > ?1 AND position <= ?2`

/** Query for the array as a blob, which is not decoded. */
function selectItems(joined: string, rowPlants: number): string {
  return `SELECT CAST('[' || coalesce(${joined}, '') || ']' AS BLOB), count(*) * ${rowPlants}, coalesce(${ownerOf('?2')}, '')`
}

const words = {
  gone: 'the database cannot be read',
  still: 'the database still cannot be read',
  back: 'the database can be read again',
}

export type Reader = ReturnType<typeof openReader>

/** Opens a reader. Throws StoreRefused when the path names other files than `files`, which the writer has open. */
export function openReader(files: OpenFiles, logger: Logger) {
  const db = new DatabaseSync(files.path, { readOnly: true, timeout: sqliteReadLockMs, returnArrays: true })
  files.check()
  const readHead = db.prepare(headQuery)
  const readEpochs = db.prepare(epochsQuery)
  const readItems = { segments: db.prepare(segmentsQuery), plants: db.prepare(plantsQuery) }
  const guard = makeGuard(logger)
  let known: Head = { position: 0, epochs: new Epochs([]) }

  function head(): Head {
    const [position, latest] = readHead.get() as unknown as [number, string]
    if (latest !== known.epochs.latest) {
      const [position, list] = readEpochs.get() as unknown as [number, string]
      known = { position, epochs: new Epochs(JSON.parse(list)) }
    } else if (position !== known.position) known = { position, epochs: known.epochs }
    return known
  }

  function read(after: number, last: number, epoch: string): Buffer {
    for (const source of findSources(after, last)) {
      const row = readItems[source].get(after, last)
      const [array, count, owner] = row as unknown as [Uint8Array, number, string]
      if (count === Math.max(0, last - after) && owner === epoch)
        return Buffer.from(array.buffer, array.byteOffset, array.byteLength)
    }
    throw new Error(`the log does not hold plants ${after + 1} to ${last} of epoch ${epoch}`)
  }

  function select(text: string, values: Value[] = []): Row[] {
    const statement = db.prepare(text)
    statement.setReturnArrays(false)
    return statement.all(named(values)) as Row[]
  }

  return {
    /** The id of the store. */
    id: String(select("SELECT value FROM meta WHERE key = 'store'")[0]?.value),
    head: () => guard(head),
    read: (after: number, last: number, epoch: string) => guard(() => read(after, last, epoch)),
    select: async (text: string, values?: Value[]) => guard(() => select(text, values)),
    close() {
      if (db.isOpen) db.close()
    },
  }
}

/** Makes a function that returns what its argument does, or rejects with StoreUnavailable and logs the outage. */
function makeGuard(logger: Logger) {
  const outage = new Outage(logger, words)
  return <T>(work: () => T): T | Promise<T> => {
    try {
      const result = work()
      outage.reportRecovery()
      return result
    } catch (cause) {
      const { message } = cause as Error
      outage.reportFailure(message, { code: codeOf(cause) })
      return Promise.reject(new StoreUnavailable('unread', message, { cause, isLogged: true }))
    }
  }
}
