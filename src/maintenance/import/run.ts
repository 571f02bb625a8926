// One pass through an input: reads and checks its records, and hands them to the writer in batches.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import { settleMs } from '../../limits.ts'
import type { Batch, BatchWriter } from './batch-writer.ts'
import type { RecordCheck } from './check.ts'
import { defaultBatchPlants, type ImportOptions, type ImportResult } from './import-options.ts'
import type { Input } from './input.ts'
import { InputError } from './input-error.ts'
import type { InputRecord } from './record.ts'
import type { Records } from './records.ts'
import type { Rejects } from './rejects.ts'

/** A batch is also handed over after `batchPlants` times this many records, so that the progress is saved. */
const recordsPerPlant = 20

export class Run {
  readonly #options: ImportOptions
  readonly #input: Input
  readonly #rejects: Rejects
  #batch = makeBatch()
  #count = 0
  /** Number of records up to the end of the last batch that was handed over. */
  #handedOver = 0

  constructor(options: ImportOptions, input: Input, rejects: Rejects) {
    this.#options = options
    this.#input = input
    this.#rejects = rejects
  }

  /** Reads all records into the writer, and reports the result however it ends. */
  async readInto(writer: BatchWriter, records: Records): Promise<ImportResult> {
    try {
      const done = this.#read(records, writer).then(() => writer.end())
      await Promise.race([done, endAfterAbort(this.#options.signal)])
      return this.#describe(writer)
    } finally {
      this.#options.onEnd?.(this.#describe(writer))
    }
  }

  #describe({ tally, start, committed }: BatchWriter): ImportResult {
    const rejected = this.#rejects.count - tally.conflict
    return { ...tally, rejected, records: committed.records, skipped: start.records }
  }

  /** Reads the records. Those before an unreadable one are added. */
  async #read({ groups, check }: Records, writer: BatchWriter): Promise<void> {
    const { signal, onProgress } = this.#options
    try {
      for await (const group of groups) {
        for (const record of group) {
          if (++this.#count <= writer.start.records) continue
          const handedOver = this.#take(record, check, writer)
          // Awaiting nothing would take as long as reading a record.
          if (handedOver) await handedOver
        }
        signal.throwIfAborted()
        onProgress?.(this.#count, this.#input)
      }
    } catch (error) {
      if (error instanceof InputError) await this.#handOver(writer)
      throw error
    } finally {
      // Let the current batch end in any case.
      await writer.settle()
    }
    await this.#handOver(writer)
    await writer.settle()
  }

  /** Adds a record to the batch. Returns a promise only when the batch is handed over. */
  #take(record: InputRecord, check: RecordCheck, writer: BatchWriter): Promise<void> | undefined {
    const checked = check.check(record)
    if ('faults' in checked) this.#rejects.add(record, checked.faults)
    else {
      this.#batch.entries.push(checked)
      // Without an id there is no conflict, and the record is not needed again.
      this.#batch.records.push(checked.id === undefined ? undefined : record)
    }
    this.#batch.end = { records: this.#count, line: record.line }
    const { batchPlants = defaultBatchPlants } = this.#options
    if (this.#batch.entries.length >= batchPlants) return this.#handOver(writer)
    return this.#count - this.#handedOver >= batchPlants * recordsPerPlant
      ? this.#handOver(writer)
      : undefined
  }

  async #handOver(writer: BatchWriter): Promise<void> {
    const batch = this.#batch
    if (batch.end.records <= this.#handedOver) return
    this.#handedOver = batch.end.records
    this.#batch = makeBatch()
    await writer.write(batch)
  }
}

/** Rejects some time after the signal: most batches end before, and a longer one is not waited for. */
async function endAfterAbort(signal: AbortSignal): Promise<never> {
  if (!signal.aborted) await once(signal, 'abort')
  await sleep(settleMs, undefined, { ref: false })
  throw signal.reason
}

function makeBatch(): Batch {
  return { entries: [], records: [], end: { records: 0, line: 0 } }
}
