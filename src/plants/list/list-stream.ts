// A list too long for one page, as a stream of parts, in constant memory.

import { PartStream } from './part-stream.ts'
import type { Part, PartReader, Range } from './parts.ts'

const comma = 0x2c

/**
 * Reads one part ahead: when its reader takes a part, the next is read in another turn of the event loop. `first`: the
 * beginning of the list, possibly shared by several streams. A failed read is the stream's error.
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
        // A rejection is handled when the part is awaited.
        ahead?.catch(() => {})
        // Turn the brackets of the parts into those of the list, and into commas.
        if (part !== first) array[0] = comma
        yield ahead ? array.subarray(0, -1) : array
        part = await ahead
      }
    })
  }
}
