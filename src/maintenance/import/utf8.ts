// Checks UTF-8: Node and csv-parse would silently replace invalid bytes by U+FFFD.
import { isUtf8 } from 'node:buffer'

/**
 * Replaces an invalid byte. This character is allowed neither raw in JSON nor in a plant, so its record is rejected.
 */
export const invalidMark = '\x1a'
const markByte = 0x1a
const maxSequence = 4

export class Utf8Chunks {
  #rest: Buffer = Buffer.alloc(0)
  #sawInvalid = false

  /** True once an invalid byte was replaced. */
  get sawInvalid(): boolean {
    return this.#sawInvalid
  }

  /** Returns the rest of the last chunk and this one, up to the last whole character. */
  push(chunk: Buffer): Buffer {
    const all = this.#rest.length > 0 ? Buffer.concat([this.#rest, chunk]) : chunk
    const end = all.length - countOpenBytes(all)
    this.#rest = all.subarray(end)
    return this.#check(all.subarray(0, end))
  }

  /** Returns the rest: part of a character, or nothing. */
  end(): Buffer {
    return this.#check(this.#rest)
  }

  #check(chunk: Buffer): Buffer {
    if (isUtf8(chunk)) return chunk
    this.#sawInvalid = true
    return mask(chunk)
  }
}

/** Counts the bytes of an incomplete character at the end. */
function countOpenBytes(bytes: Buffer): number {
  for (let count = 1; count < maxSequence && count <= bytes.length; count++) {
    const length = sequenceLength(bytes[bytes.length - count] as number)
    if (length > 0) return length > count ? count : 0
  }
  return 0
}

/** Length of the character that begins with this byte; 0 if none can. */
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
