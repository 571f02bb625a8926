// Appends batches to the log one by one. The next is read and checked meanwhile, and appended only once the outcome of
// the last is certain.
import { setTimeout as sleep } from 'node:timers/promises'
import { listShown } from '../../../schemas/plant.ts'
import { type Entry, type Outcome, type Store, StoreUnavailable } from '../../store/store.ts'
import type { Position, ProgressStore } from './import-progress.ts'
import type { InputRecord } from './record.ts'
import type { Reason, Rejects } from './rejects.ts'

/** `records`: the input of each entry with an id; `end`: the position in the input behind the batch. */
export type Batch = {
  entries: Entry[]
  records: (InputRecord | undefined)[]
  end: Omit<Position, 'rejects'>
}

export type Tally = Record<Outcome, number>

const conflict: Omit<Reason, 'pointer'> = {
  code: 'id-conflict',
  detail: `is the id of a plant that already exists with a different ${listShown('or')}`,
}

export type WriterOptions = {
  log: Pick<Store['log'], 'append'>
  /** Undefined when nothing is added. */
  progressStore: ProgressStore | undefined
  /** JSON Pointer to the id of a record. */
  idPointer: string
  rejects: Rejects
  /** Closes the store. */
  close: () => Promise<void>
  /** Ends the waiting for an unavailable store. */
  signal: AbortSignal
  /** A batch that fails because the store is unavailable is retried for this long. */
  patienceMs: number
  say: (line: string) => void
}

const roomEveryMs = 25
const roomMs = 2
const firstPauseMs = 100
const longestPauseMs = 2000

export class BatchWriter {
  /** The position that an earlier run has reached. */
  readonly start: Position
  readonly tally: Tally = { added: 0, replayed: 0, conflict: 0 }
  readonly #options: WriterOptions
  #underWay: Promise<void> = Promise.resolve()
  #committed: Position
  #madeRoomAtMs = performance.now()

  constructor(start: Position, options: WriterOptions) {
    this.start = start
    this.#committed = start
    this.#options = options
  }

  /** The position up to which batches are certainly committed. */
  get committed(): Position {
    return this.#committed
  }

  /** Begins a batch once the one before it is committed. Rejects when that one failed. */
  async write(batch: Batch): Promise<void> {
    await this.#underWay
    this.#underWay = this.#commit(batch)
    this.#underWay.catch(() => {})
  }

  /** Resolves when no batch is under way. */
  async settle(): Promise<void> {
    await this.#underWay
  }

  /** Notes that the input was read to its end. */
  async end(): Promise<void> {
    const { progressStore, rejects } = this.#options
    rejects.flush()
    await progressStore?.finish(this.#committed)
  }

  close(): Promise<void> {
    return this.#options.close()
  }

  async #commit(batch: Batch): Promise<void> {
    const { progressStore, rejects, idPointer } = this.#options
    rejects.flush()
    await progressStore?.guard()
    const end = { ...batch.end, rejects: rejects.bytes }
    const outcomes = await this.#append(batch.entries, end)
    this.#committed = end
    outcomes.forEach((outcome, index) => {
      this.tally[outcome]++
      if (outcome === 'conflict')
        rejects.add(batch.records[index] as InputRecord, [{ ...conflict, pointer: idPointer }])
    })
    // Conflicts are known to this process alone, so write them out at once.
    rejects.flush()
    await this.#makeRoom()
  }

  /** Pauses now and then: other processes poll for the lock of a SQLite file. */
  async #makeRoom(): Promise<void> {
    if (performance.now() - this.#madeRoomAtMs < roomEveryMs) return
    await sleep(roomMs)
    this.#madeRoomAtMs = performance.now()
  }

  async #append(entries: Entry[], end: Position): Promise<Outcome[]> {
    const { log, progressStore, signal, patienceMs, say } = this.#options
    const untilMs = performance.now() + patienceMs
    let mayBeThere = false
    let outcomes: Outcome[] | undefined
    for (let pauseMs = firstPauseMs; !outcomes; pauseMs = Math.min(pauseMs * 2, longestPauseMs)) {
      try {
        const isThere = mayBeThere && (await progressStore?.holds(end))
        outcomes = await (isThere
          ? this.#repeat(entries)
          : log.append(entries, undefined, progressStore?.mark(end)))
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error
        mayBeThere ||= error.outcome === 'unknown'
        if (performance.now() + pauseMs > untilMs) throw error
        if (pauseMs === firstPauseMs) say(`the store is unavailable, retrying: ${error.message}`)
        await sleep(pauseMs, undefined, { signal }).catch(() => signal.throwIfAborted())
      }
    }
    return outcomes
  }

  /**
   * Returns the outcomes of a batch that is in the log already: appends its plants with an id again, which is safe and
   * says `replayed` of each; those without an id were added.
   */
  async #repeat(entries: Entry[]): Promise<Outcome[]> {
    const known = await this.#options.log.append(entries.filter(({ id }) => id !== undefined))
    let next = 0
    return entries.map(({ id }) => (id === undefined ? 'added' : (known[next++] as Outcome)))
  }
}
