// Opens the input of an import: a file or a pipe, which is decompressed and read once.
import { createReadStream, realpathSync, statSync } from 'node:fs'
import { createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib'

/** Decoded as latin1: one character per byte. */
export const byteOrderMark = '\xef\xbb\xbf'

/** The input cannot be imported, not even in part. */
export class InputError extends Error {}

/** The least bytes of a chunk, except for the last. Its plants are added in one transaction. */
const chunkBytes = 128 * 1024

export type Input = ReturnType<typeof openInput>
type Chunks = AsyncGenerator<Buffer, undefined>

/** Opens a file, or stdin as `-`. `path`: of a regular file, with links resolved; `chunks`: the decompressed bytes. */
export function openInput(name: string) {
  const path = name !== '-' && statSync(name).isFile() ? realpathSync(name) : undefined
  const stream = name === '-' ? process.stdin : createReadStream(name, { highWaterMark: chunkBytes })
  return { path, chunks: join(decode(join(stream))), close: () => stream.destroy() }
}

/** Joins pieces, which may be small, into chunks. */
async function* join(pieces: AsyncIterable<Buffer>): Chunks {
  let [joined, bytes]: [Buffer[], number] = [[], 0]
  for await (const piece of pieces) {
    joined.push(piece)
    bytes += piece.length
    if (bytes < chunkBytes) continue
    yield Buffer.concat(joined)
    joined = []
    bytes = 0
  }
  if (bytes > 0) yield Buffer.concat(joined)
}

/** `magic`: the first bytes, in hex; zstd may begin with a skippable frame. */
const codings = [
  { name: 'gzip', magic: /^1f8b/, open: createGunzip },
  { name: 'zstd', magic: /^(28b52ffd|5.2a4d18)/, open: createZstdDecompress },
]

async function* decode(chunks: Chunks) {
  const { value: first = Buffer.alloc(0) } = await chunks.next()
  const coding = codings.find(({ magic }) => magic.test(first.toString('hex', 0, 4)))
  if (coding) return yield* decompress(first, chunks, coding)
  yield first
  yield* chunks
}

/** Decompresses consecutive members or frames, up to the end of the input. */
async function* decompress(first: Buffer, chunks: Chunks, { name, open }: (typeof codings)[number]) {
  try {
    for (let rest: Buffer | undefined = first; rest; ) {
      const decoder = open({ chunkSize: chunkBytes })
      const fed = feed(decoder, rest, chunks)
      yield* decoder
      rest = await fed
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'Z_BUF_ERROR') throw new InputError(`the ${name} data is cut short`)
    if (/TooLarge/.test(`${code}`)) throw new InputError('needs too much memory: zstd -d --long=31 FILE')
    if (!/^(Z_|ZSTD_)/.test(`${code}`)) throw error
    throw new InputError(`the ${name} data is damaged: ${message}`)
  }
}

/**
 * Writes chunks to a decoder until its member or frame has ended; resolves to the rest of the last chunk. Nothing is
 * written after the end, because the decoder would begin the next one.
 */
async function feed(decoder: Gunzip | ZstdDecompress, first: Buffer, chunks: Chunks) {
  let fed = 0
  try {
    for (let chunk: Buffer | undefined = first; chunk; { value: chunk } = await chunks.next()) {
      fed += chunk.length
      if (await new Promise((resolve) => decoder.write(chunk, resolve))) break
      if (decoder.bytesWritten < fed) return chunk.subarray(decoder.bytesWritten - fed)
    }
    decoder.end()
  } catch (error) {
    decoder.destroy(error as Error)
  }
  return undefined
}
