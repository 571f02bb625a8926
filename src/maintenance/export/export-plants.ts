// Exports the plants of a log up to one head, page by page, from the JSON text in the log.
import { createWriteStream } from 'node:fs'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate as turn } from 'node:timers/promises'
import { scannedPlants } from '../../limits.ts'
import { makeCollector } from '../../runtime/garbage.ts'
import { type NewFileOptions, writeNewFile } from '../../runtime/new-file.ts'
import type { StoreView } from '../../store/engine.ts'
import { StoreRefused } from '../../store/errors.ts'
import { type CompressionName, compressors, type FormatName, formats } from './formats.ts'

export type ExportOptions = {
  format: FormatName
  compression: CompressionName | undefined
  withId: boolean
  /** Exports the plants after this position. */
  after: number
  head: number
  signal?: AbortSignal
  onProgress?: (done: number) => void
}

/**
 * Writes the plants to a stream, which stays open without `end`. Throws StoreRefused when the log lacks some of them.
 */
export async function exportTo(
  destination: NodeJS.WritableStream,
  view: StoreView,
  options: ExportOptions,
  end = false,
): Promise<void> {
  const { compression, signal } = options
  const source = Readable.from(writePages(view, options))
  const stages = compression ? [source, compressors[compression](), destination] : [source, destination]
  await pipeline(stages, { end, ...(signal && { signal }) })
}

/** Writes the plants to a file, which appears whole or not at all. */
export function exportToFile(path: string, view: StoreView, options: ExportOptions & NewFileOptions) {
  return writeNewFile(path, options, (temporaryPath) =>
    exportTo(createWriteStream(temporaryPath, { flags: 'wx' }), view, options, true),
  )
}

async function* writePages(view: StoreView, options: ExportOptions): AsyncGenerator<Buffer | string> {
  const { format: name, withId, after, head, onProgress } = options
  const format = await formats[name](withId)
  const collectAfter = makeCollector()
  yield format.start
  for (let position = after; position < head; ) {
    // Reading SQLite and writing to a file never yield: let signals be handled.
    await turn()
    const last = Math.min(position + scannedPlants, head)
    const { count, text } = await view
      .join({ after: position, last }, format.separator, withId)
      .catch(explain)
    let parts: (Buffer | string)[] = []
    try {
      if (count !== last - position) throw new Error('a plant is missing')
      parts = format.write(text, position === after)
    } catch (cause) {
      const message = `plants ${position + 1} to ${last} are damaged; plant-store verify names the faults`
      throw new StoreRefused(message, { cause })
    }
    yield* parts
    collectAfter(text.length)
    position = last
    onProgress?.(position - after)
  }
  yield format.end
}

function explain(error: Error): never {
  throw new StoreRefused(`the database cannot be read: ${error.message}`, { cause: error })
}
