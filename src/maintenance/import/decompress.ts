// gzip and zstd, told by their first bytes. Both may come in several parts, one after the other.
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

/** The bytes that these stand for, as they come. Throws InputError when what is compressed is damaged. */
export async function* decompress(bytes: AsyncIterable<Buffer>): AsyncGenerator<Buffer> {
  const source = new Source(bytes)
  const head = await source.peek(4)
  const coding = codings.find(({ magic }) => magic.equals(head.subarray(0, magic.length)))
  if (coding) yield* decode(coding, source)
  else yield* source
}

/** zstd stops at the end of a frame and says nothing of what follows: the rest is decoded anew. */
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

/** Never rejects: a fault of the source ends the decoder, and shows there. */
async function feed(decoder: ReturnType<Coding['open']>, source: Source): Promise<void> {
  // A write in which the decoder fails is never answered.
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

/** Chunks that can be looked at, and given back. */
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

  /** The first bytes: fewer only at the end. They stay where they are. */
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
