// Where batches go: into the log of a store, or nowhere when the input is only to be checked.
import { resolve } from 'node:path'
import { type Batch, BatchWriter, type Tally } from './batch-writer.ts'
import { headBytes, type Input } from './input.ts'
import { defaultPatienceMs, type ImportOptions } from './options.ts'
import { Places, type Progressed } from './place.ts'
import type { Rejects } from './rejects.ts'

/** `start`: what an earlier run has imported. */
export type Sink = {
  readonly start: Progressed
  readonly tally: Tally
  /** Resolves when the batch is under way. Rejects when the one before it failed. */
  write(batch: Batch): Promise<void>
  /** Resolves when nothing is under way. */
  settle(): Promise<void>
  /** Notes that the input was read to its end. */
  end(): Promise<void>
  close(): Promise<void>
}

export type SinkOptions = Omit<ImportOptions, 'rejects'> & {
  input: Input
  identity: unknown
  rejects: Rejects
}

const beginning = { records: 0, line: 0, rejects: 0 }

export async function makeSink(options: SinkOptions): Promise<Sink> {
  if (!options.dryRun) return openSink(options)
  options.rejects.open(beginning)
  const nothing = async () => {}
  const tally = { added: 0, replayed: 0, conflict: 0 }
  const write = async ({ entries }: Batch) => {
    tally.added += entries.length
    options.rejects.flush()
  }
  return {
    start: beginning,
    tally,
    write,
    settle: nothing,
    end: async () => options.rejects.flush(),
    close: nothing,
  }
}

async function openSink(options: SinkOptions): Promise<Sink> {
  const { input, path, identity, rejects, say, patienceMs = defaultPatienceMs } = options
  const store = await options.openStore()
  try {
    const name = path === '-' ? input.name : resolve(path)
    const head = input.head.subarray(0, headBytes)
    const places = new Places(store, { name, head, options: identity })
    const start = await findStart(places, options)
    rejects.open(start)
    await places.set(start)
    const onWait = (reason: string) => say(`the store takes nothing now, trying again: ${reason}`)
    const writer = new BatchWriter(start, { store, places, rejects, patienceMs, onWait })
    return {
      start,
      tally: writer.tally,
      write: (batch) => writer.write(batch),
      settle: () => writer.settle(),
      async end() {
        rejects.flush()
        await places.finish(writer.committed)
      },
      close: () => store.close(),
    }
  } catch (error) {
    await store.close()
    throw error
  }
}

async function findStart(places: Places, { resume, say, input }: SinkOptions): Promise<Sink['start']> {
  const place = await places.find()
  if (resume && !place) await places.checkName()
  if (resume && place) {
    const { records, line, rejects } = place
    say(`${input.name}: ${records} records are imported already`)
    return { records, line, rejects }
  }
  if (place && !place.done)
    say(
      `${input.name}: an import was cut short after ${place.records} records; with --resume this one would go on there`,
    )
  return beginning
}
