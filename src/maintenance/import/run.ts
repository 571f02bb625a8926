// Imports an input: its records are read, checked and put into the log, batch by batch.
import type { Fault } from '../../schemas/problem.ts'
import type { Batch } from './batch-writer.ts'
import type { RecordCheck } from './check.ts'
import { resolveFields } from './fields.ts'
import { type Input, openInput } from './input.ts'
import { InputError } from './input-error.ts'
import { defaultBatchPlants, type ImportOptions, type ImportResult } from './options.ts'
import type { InputRecord } from './record.ts'
import { openRecords, type Records } from './records.ts'
import { Rejects } from './rejects.ts'
import { makeSink, type Sink } from './sink.ts'

/** Where few records are plants, the place is kept nevertheless. */
const recordsPerPlant = 20

/**
 * Throws InputError when the rest of the input cannot be read, StoreRefused or StoreUnavailable when the store does not
 * take it; what was committed before stays, and can be resumed.
 */
export async function importPlants(options: ImportOptions): Promise<ImportResult> {
  const { path, signal, say } = options
  const input = await openInput(path, signal)
  const rejects = new Rejects({ name: input.name, path: options.rejects, say })
  const imported = importInput(input, rejects, options).catch((error: unknown) => {
    throw error instanceof InputError ? error.in(input.name) : error
  })
  return imported.finally(() => {
    input.close()
    rejects.close()
  })
}

async function importInput(input: Input, rejects: Rejects, options: ImportOptions): Promise<ImportResult> {
  const { format, trim = false } = options
  const fields = resolveFields(options)
  const records = await openRecords(input, { format, fields, trim })
  const sink = await makeSink({
    ...options,
    input,
    identity: { format: records.format, fields, trim },
    rejects,
  })
  const run = new Run(options, input, rejects)
  return run.readInto(sink, records).finally(() => sink.close())
}

class Run {
  readonly #options: ImportOptions
  readonly #input: Input
  readonly #rejects: Rejects
  #batch = makeBatch()
  #count = 0
  /** Up to where records are in a batch that was handed over. */
  #handedOver = 0

  constructor(options: ImportOptions, input: Input, rejects: Rejects) {
    this.#options = options
    this.#input = input
    this.#rejects = rejects
  }

  async readInto(sink: Sink, records: Records): Promise<ImportResult> {
    const count = await this.#read(records, sink)
    await sink.end()
    const rejected = this.#rejects.count - sink.tally.conflict
    return { ...sink.tally, rejected, records: count, skipped: sink.start.records }
  }

  /** Resolves to the number of records. What comes before an unreadable one is added. */
  async #read({ groups, check }: Records, sink: Sink): Promise<number> {
    const { signal, onProgress } = this.#options
    try {
      for await (const group of groups) {
        for (const record of group)
          if (++this.#count > sink.start.records) await this.#take(record, check, sink)
        signal.throwIfAborted()
        onProgress?.(this.#count, this.#input)
      }
    } catch (error) {
      if (error instanceof InputError) await this.#handOver(sink)
      throw error
    } finally {
      // Whatever happened: a batch under way comes to its end.
      await sink.settle()
    }
    await this.#handOver(sink)
    await sink.settle()
    return this.#count
  }

  /** Waits only when a batch is full. */
  #take(record: InputRecord, check: RecordCheck, sink: Sink): Promise<void> | undefined {
    const checked = check.check(record.source)
    if ('faults' in checked) this.#reject(record, checked.faults)
    else {
      this.#batch.entries.push(checked)
      this.#batch.lines.push(record.line)
    }
    this.#batch.end = { records: this.#count, line: record.line }
    const { batchPlants = defaultBatchPlants } = this.#options
    if (this.#batch.entries.length >= batchPlants) return this.#handOver(sink)
    return this.#count - this.#handedOver >= batchPlants * recordsPerPlant ? this.#handOver(sink) : undefined
  }

  #reject(record: InputRecord, faults: Fault[]): void {
    this.#rejects.add(record, faults)
    if (this.#options.strict) throw new InputError('was rejected, and --strict stops there', record.line)
  }

  async #handOver(sink: Sink): Promise<void> {
    const batch = this.#batch
    if (batch.end.records <= this.#handedOver) return
    this.#handedOver = batch.end.records
    this.#batch = makeBatch()
    await sink.write(batch)
  }
}

function makeBatch(): Batch {
  return { entries: [], lines: [], end: { records: 0, line: 0 } }
}
