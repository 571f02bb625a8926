// Decodes UTF-8. Node would silently replace invalid bytes by U+FFFD, which may be in a text as well.
import { isUtf8 } from 'node:buffer'

/** The longest character, in bytes. */
const longest = 4
/** Stands for invalid bytes. No UTF-8 spells it: `isWellFormed` tells a text that has one. */
const loneSurrogate = '\udfff'

/** Yields the texts of chunks, each with whole characters. */
export async function* decodeUtf8(chunks: AsyncIterable<Buffer>): AsyncGenerator<string> {
  let rest = Buffer.alloc(0)
  for await (const chunk of chunks) {
    const bytes = Buffer.concat([rest, chunk])
    // Bytes that continue a character are 10xxxxxx; the last character may be incomplete.
    const last = bytes.findLastIndex((byte) => byte >> 6 !== 0b10)
    const isOpen = (bytes[last] ?? 0) >= 0x80 && bytes.length - last < longest
    const end = isOpen ? last : bytes.length
    rest = bytes.subarray(end)
    yield decode(bytes.subarray(0, end))
  }
  yield decode(rest)
}

function decode(bytes: Buffer): string {
  if (isUtf8(bytes)) return bytes.toString()
  return bytes
    .toString('latin1')
    .split('\xef\xbf\xbd')
    .map((part) => Buffer.from(part, 'latin1').toString().replaceAll('\ufffd', loneSurrogate))
    .join('\ufffd')
}
