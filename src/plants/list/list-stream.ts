// A list that is too long for one page, part by part, in constant memory.

import { PartStream } from './part-stream.ts'
import type { Part, PartReader, Range } from './parts.ts'

const comma = 0x2c

/**
 * Holds one part that its reader has not asked for yet, beside the one that was handed out last: the next is read once
 * the reader has asked for the one before, in another turn of the event loop. `first`: the beginning of the list, which
 * has been read, perhaps for several streams. A read that fails is the stream's error.
 */
export class ListStream extends PartStream {
  constructor(parts: PartReader, range: Range, first: Part) {
    super(async function* (stream) {
      const readAfter = ({ reached, meanBytes }: Part): Promise<Part | undefined> =>
        parts.readInTurn(() => (stream.destroyed ? undefined : parts.read(range, reached, meanBytes)))
      for (let part: Part | undefined = first; part; ) {
        const { array }: Part = part
        const ahead: Promise<Part | undefined> | undefined =
          part.reached < range.last ? readAfter(part) : undefined
        // A fault shows when the reader asks for the part.
        ahead?.catch(() => {})
        // The brackets of the parts become those of the list, and the commas between them.
        if (part !== first) array[0] = comma
        yield ahead ? array.subarray(0, -1) : array
        part = await ahead
      }
    })
  }
}
