// Decompresses gzip and zstd, recognized by their first bytes, also with several members or frames in a row.
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { InputError } from './input-error.ts'

const chunkSize = 128 * 1024

const codings = [
  { name: 'gzip', magic: Buffer.from([0x1f, 0x8b]), open: () => createGunzip({ chunkSize }) },
  {
    name: 'zstd',
    magic: Buffer.from([0x28, 0xb5, 0x2f, 0xfd]),
    open: () => createZstdDecompress({ chunkSize }),
  },
]

type Coding = (typeof codings)[number]

/** Yields the decompressed bytes. Throws InputError when the input is damaged. */
export async function* decompress(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const source = new Source(bytes)
  const head = await source.peek(4)
  const coding = codings.find(({ magic }) => magic.equals(head.subarray(0, magic.length)))
  if (coding) yield* decode(coding, source)
  else yield* source
}

/** Decodes gzip or zstd. Node's decoder of zstd stops silently at the end of a frame: a new one decodes the rest. */
async function* decode(coding: Coding, source: Source): AsyncGenerator<Buffer> {
  do {
    const decoder = coding.open()
    const fed = feed(decoder, source)
    try {
      yield* decoder
      await fed
    } catch (error) {
      await fed
      throw explain(coding, error as NodeJS.ErrnoException)
    } finally {
      decoder.destroy()
    }
  } while ((await source.peek(1)).length > 0)
}

/** Feeds a decoder. Never rejects: an error of the source destroys the decoder, which reports it. */
async function feed(decoder: ReturnType<Coding['open']>, source: Source): Promise<void> {
  // A write on which the decoder fails is never called back.
  let written: (() => void) | undefined
  decoder.once('close', () => written?.())
  try {
    for (let chunk = await source.next(); chunk; chunk = await source.next()) {
      const before = decoder.bytesWritten
      await new Promise<void>((resolve) => {
        written = resolve
        decoder.write(chunk, () => resolve())
      })
      const used = decoder.bytesWritten - before
      if (decoder.destroyed) return
      if (used < chunk.length) return source.unread(chunk.subarray(used))
    }
    decoder.end()
  } catch (error) {
    decoder.destroy(error as Error)
  }
}

function explain({ name }: Coding, error: NodeJS.ErrnoException): Error {
  if (error.code === 'Z_BUF_ERROR') return new InputError(`the ${name} data is cut short`)
  if (/^(Z_|ZSTD_)/.test(String(error.code)))
    return new InputError(`the ${name} data is damaged: ${error.message}`)
  return error
}

/** Chunks with look-ahead and push-back. */
class Source {
  readonly #chunks: AsyncIterator<Buffer>
  #held: Buffer | undefined

  constructor(bytes: AsyncIterable<Buffer>) {
    this.#chunks = bytes[Symbol.asyncIterator]()
  }

  async next(): Promise<Buffer | undefined> {
    const held = this.#held
    this.#held = undefined
    if (held) return held
    const { done, value } = await this.#chunks.next()
    return done ? undefined : value
  }

  unread(chunk: Buffer): void {
    this.#held = chunk
  }

  /** Returns the next bytes without consuming them; fewer only at the end. */
  async peek(count: number): Promise<Buffer> {
    let held = Buffer.alloc(0)
    for (let chunk = await this.next(); chunk; chunk = await this.next()) {
      held = Buffer.concat([held, chunk])
      if (held.length >= count) break
    }
    if (held.length > 0) this.#held = held
    return held
  }

  async *[Symbol.asyncIterator](): AsyncGenerator<Buffer> {
    for (let chunk = await this.next(); chunk; chunk = await this.next()) yield chunk
  }
}
