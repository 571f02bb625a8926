// Opens the input of an import: a file or a pipe, which is decompressed and read once.
import { createReadStream, realpathSync, statSync } from 'node:fs'
import { createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib'

/** Decoded as latin1: one character per byte. */
export const byteOrderMark = '\xef\xbb\xbf'

/** The input cannot be imported, not even in part. */
export class InputError extends Error {}

/** The least bytes of a text. Its plants are added in one transaction. */
const textBytes = 128 * 1024

export type Input = ReturnType<typeof openInput>

/**
 * Opens a file, or stdin as `-`. `path`: of a regular file, with links resolved; `texts`: yields the decompressed bytes
 * as latin1, in parts of at least `textBytes` except for the last, and then an empty text.
 */
export function openInput(name: string) {
  const path = name !== '-' && statSync(name).isFile() ? realpathSync(name) : undefined
  const stream = name === '-' ? process.stdin : createReadStream(name, { highWaterMark: textBytes })
  return { path, texts: readTexts(stream[Symbol.asyncIterator]()), close: () => stream.destroy() }
}

type Chunks = AsyncIterableIterator<Buffer, undefined>

async function* readTexts(chunks: Chunks): AsyncGenerator<string> {
  let text = ''
  for await (const chunk of decode(chunks)) {
    text += chunk.toString('latin1')
    if (text.length < textBytes) continue
    yield text
    text = ''
  }
  yield text
  yield ''
}

/** `magic`: the first bytes, in hex; zstd may begin with a skippable frame. */
const codings = [
  { name: 'gzip', magic: /^1f8b/, open: createGunzip },
  { name: 'zstd', magic: /^(28b52ffd|5.2a4d18)/, open: createZstdDecompress },
]

async function* decode(chunks: Chunks): AsyncGenerator<Buffer> {
  const head = await readHead(chunks)
  const coding = codings.find(({ magic }) => magic.test(head.toString('hex', 0, 4)))
  if (coding) return yield* decompress(head, chunks, coding)
  yield head
  yield* chunks
}

/** Reads at least 4 bytes, if there are as many. */
async function readHead(chunks: Chunks): Promise<Buffer> {
  let head = Buffer.alloc(0)
  while (head.length < 4) {
    const { value } = await chunks.next()
    if (value === undefined) break
    head = Buffer.concat([head, value])
  }
  return head
}

/** Decompresses consecutive members or frames, up to the end of the input. */
async function* decompress(head: Buffer, chunks: Chunks, { name, open }: (typeof codings)[number]) {
  try {
    for (let rest: Buffer | undefined = head; rest; ) {
      const decoder = open({ chunkSize: textBytes })
      const fed = feed(decoder, rest, chunks)
      yield* decoder
      rest = await fed
      // gzip(1) disregards zeros behind the data, too.
      if (name === 'gzip' && rest && (await areZeros(rest, chunks))) return
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'Z_BUF_ERROR') throw new InputError(`the ${name} data is cut short`)
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

async function areZeros(rest: Buffer, chunks: Chunks): Promise<boolean> {
  if (rest.some(Boolean)) return false
  for await (const chunk of chunks) if (chunk.some(Boolean)) return false
  return true
}
