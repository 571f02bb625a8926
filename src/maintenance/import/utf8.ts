// UTF-8 that can be trusted: Node and csv-parse would turn bytes that are none into U+FFFD without a word.
import { isUtf8 } from 'node:buffer'

/** Stands for a byte that is no UTF-8. Raw, it is allowed neither in JSON nor in a plant: its record is rejected. */
export const invalidMark = '\x1a'
const markByte = 0x1a
const maxSequence = 4

export class Utf8Chunks {
  #rest: Buffer = Buffer.alloc(0)
  #sawInvalid = false

  /** True once `invalidMark` may stand for something. */
  get sawInvalid(): boolean {
    return this.#sawInvalid
  }

  /** The chunk, with what was left of the last, up to the last whole character. */
  push(chunk: Buffer): Buffer {
    const all = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk
    const end = all.length - countOpenBytes(all)
    this.#rest = all.subarray(end)
    return this.#check(all.subarray(0, end))
  }

  /** The rest: part of a character, or nothing. */
  end(): Buffer {
    return this.#check(this.#rest)
  }

  #check(chunk: Buffer): Buffer {
    if (isUtf8(chunk)) return chunk
    this.#sawInvalid = true
    return mask(chunk)
  }
}

/** Number of bytes at the end that begin a character, which the next chunk may complete. */
function countOpenBytes(bytes: Buffer): number {
  for (let count = 1; count < maxSequence && count <= bytes.length; count++) {
    const length = sequenceLength(bytes[bytes.length - count] as number)
    if (length > 0) return length > count ? count : 0
  }
  return 0
}

/** Length of the character that begins with this byte; 0 when none does. */
function sequenceLength(byte: number): number {
  if (byte < 0x80) return 1
  if (byte < 0xc2 || byte > 0xf4) return 0
  return byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4
}

function mask(bytes: Buffer): Buffer {
  const masked = Buffer.from(bytes)
  for (let i = 0; i < masked.length; ) {
    const length = sequenceLength(masked[i] as number)
    if (length === 1 || (length > 1 && isUtf8(masked.subarray(i, i + length)))) i += length
    else masked[i++] = markByte
  }
  return masked
}
