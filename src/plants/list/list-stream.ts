// A list too long for one page, as a stream of parts, plain or compressed, in constant memory.
import { Readable } from 'node:stream'
import type { FairPool } from '../../runtime/fair-pool.ts'
import type { Codec } from './coding/codec.ts'
import type { Part, PartReader, Range } from './parts.ts'

const comma = 0x2c

/** Streams the parts of a list. `first`: its beginning, possibly shared by several streams. */
export function streamList(parts: PartReader, range: Range, first: Part): Readable {
  async function* read() {
    for (let part: Part | undefined = first; part; part = await parts.readInTurn(range, part, isGone)) {
      const { array, reached }: Part = part
      const isLast = reached === range.last
      // Turn the brackets of the parts into those of the list, and into commas.
      if (part !== first) array[0] = comma
      yield isLast ? array : array.subarray(0, -1)
      if (isLast) return
    }
  }
  const stream = toStream(read())
  const isGone = () => stream.destroyed
  return stream
}

export type CompressionOptions = { codec: Codec; jobs: FairPool; owner: string }

/** Compresses a list part by part, in the thread pool, as its reader takes it. */
export function compressList(list: Readable, { codec, jobs, owner }: CompressionOptions): Readable {
  async function* compress() {
    for await (const part of list) {
      const bytes = await jobs.run(owner, () => codec.add(part))
      // The codec may need more parts before its first output.
      if (bytes.length > 0) yield bytes
    }
    yield await jobs.run(owner, () => codec.finish())
  }
  return toStream(compress()).once('close', () => {
    list.destroy()
    codec.close()
  })
}

/** A stream that makes one part ahead: the next when its reader takes one. */
function toStream(parts: AsyncGenerator<Buffer, void>): Readable {
  return Readable.from(parts, { objectMode: false, highWaterMark: 1 })
}
