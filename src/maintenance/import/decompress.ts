// Decompresses gzip and zstd, recognized by their first bytes, also with several members or frames in a row.
import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { InputError } from './record.ts'

/** A write is called back once the decoder has consumed it, and only then the next is made. */
const options = { chunkSize: 128 * 1024, writableHighWaterMark: 1 }

/** `magic`: of the first four bytes; zstd may begin with a frame to be skipped. `padding`: may follow (gzip(1)). */
const codings = [
  { name: 'gzip', magic: /^1f8b/, padding: 0, open: () => createGunzip(options) },
  { name: 'zstd', magic: /^(28b52ffd|5.2a4d18)/, open: () => createZstdDecompress(options) },
]

type Coding = (typeof codings)[number]

/** Chunks of bytes that are read once. */
export type Chunks = AsyncIteratorObject<Buffer, undefined>

/** Reads the decompressed bytes, which throw InputError when the input is damaged. */
export async function decompress(bytes: Chunks): Promise<{ isCompressed: boolean; bytes: Chunks }> {
  const head = await readHead(bytes, 4)
  const coding = codings.find(({ magic }) => magic.test(head.toString('hex', 0, 4)))
  const all = prepend(head, bytes)
  return { isCompressed: coding !== undefined, bytes: coding ? decode(coding, all) : all }
}

/** Reads chunks until they have so many bytes, or end. */
export async function readHead(bytes: Chunks, count: number): Promise<Buffer> {
  const chunks: Buffer[] = []
  for (let length = 0; length < count; ) {
    const { done, value } = await bytes.next()
    if (done) break
    chunks.push(value)
    length += value.length
  }
  return Buffer.concat(chunks)
}

export async function* prepend(head: Buffer, rest: Chunks): AsyncGenerator<Buffer> {
  yield head
  yield* rest
}

/** Node's decoder of zstd stops silently where a frame ends: a new one decodes the rest. */
async function* decode(coding: Coding, chunks: Chunks): AsyncGenerator<Buffer> {
  let chunk: Buffer | undefined = (await chunks.next()).value
  while (chunk) {
    const decoder = coding.open()
    const feed = async function* () {
      for (let fed = 0; chunk; chunk = (await chunks.next()).value) {
        fed += chunk.length
        yield chunk
        const unread = fed - decoder.bytesWritten
        if (unread === 0) continue
        chunk = chunk.subarray(-unread)
        return
      }
    }
    const fed = pipeline(feed, decoder)
    fed.catch(() => {})
    try {
      yield* decoder
      await fed
    } catch (error) {
      throw explain(coding, error as NodeJS.ErrnoException)
    }
    while (chunk?.every((byte) => byte === coding.padding)) chunk = (await chunks.next()).value
  }
}

function explain({ name }: Coding, error: NodeJS.ErrnoException): Error {
  if (error.code === 'Z_BUF_ERROR') return new InputError(`the ${name} data is cut short`)
  if (/^(Z_|ZSTD_)/.test(String(error.code)))
    return new InputError(`the ${name} data is damaged: ${error.message}`)
  return error
}
