// Compresses lists. The bytes of a list in a coding do not depend on its pieces, nor on whether it was cached or
// streamed, as its strong entity tag requires (RFC 9110, section 8.8.1).
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import { createBrotliCompress, createGzip, createZstdCompress, constants as zlib } from 'node:zlib'
import type { Coding } from '../../../http/codings.ts'
import { pagePlants } from '../../../limits.ts'
import type { FairPool } from '../../../runtime/fair-pool.ts'

export type Compression = Exclude<Coding, 'identity'>

const kibibyte = 1024

// Measured on 100 plants, and on 400,000: docs/decisions/0020-codings.md.
const zstd = (level: number, window: number) => ({
  params: {
    [zlib.ZSTD_c_compressionLevel]: level,
    // A power of two, most of a codec's memory. A larger one would make no page smaller, and take time.
    [zlib.ZSTD_c_windowLog]: window,
    [zlib.ZSTD_c_hashLog]: 16,
    [zlib.ZSTD_c_chainLog]: 16,
  },
})
const brotli = {
  params: {
    [zlib.BROTLI_PARAM_QUALITY]: 5,
    // Brotli gathers twice as much before its first output: less than one part of a list.
    [zlib.BROTLI_PARAM_LGWIN]: 16,
    // Any constant: by default it is the size of the first piece, which changes the bytes.
    [zlib.BROTLI_PARAM_SIZE_HINT]: 256 * kibibyte,
  },
}

const codecs = {
  zstd: {
    make: createZstdCompress,
    finish: zlib.ZSTD_e_end,
    version: process.versions.zstd,
    options: { page: zstd(9, 18), long: zstd(1, 19) },
  },
  br: {
    make: createBrotliCompress,
    finish: zlib.BROTLI_OPERATION_FINISH,
    version: process.versions.brotli,
    options: { page: brotli, long: brotli },
  },
  gzip: {
    make: createGzip,
    finish: zlib.Z_FINISH,
    version: process.versions.zlib,
    options: { page: { level: 6 }, long: { level: 2 } },
  },
}

/** Buffers that hold all output of a part, so that a step consumes its part whole and returns all output. */
const buffers = { chunkSize: 64 * kibibyte, readableHighWaterMark: Number.MAX_SAFE_INTEGER }

/**
 * Names the bytes that a codec makes, which may differ with its version, the size of pages, the processor, and the
 * system (in gzip's head).
 */
export const codecNames = { zstd: nameCodec('zstd'), br: nameCodec('br'), gzip: nameCodec('gzip') }

function nameCodec(coding: Compression): string {
  const { version, options } = codecs[coding]
  const made = JSON.stringify([version, options, pagePlants, process.platform, process.arch])
  return `${coding}-${createHash('sha256').update(made).digest('base64url').slice(0, 4)}`
}

const nothing = Buffer.alloc(0)

/** Compresses one list. Each step is a job of the thread pool; steps must not overlap. */
export class Codec {
  readonly #stream: ReturnType<(typeof codecs)[Compression]['make']>
  readonly #finish: number

  /** `plants`: number of plants in the list. */
  constructor(coding: Compression, plants: number) {
    const { make, finish, options } = codecs[coding]
    // Pages are compressed once and cached, longer lists for each request. The number of plants alone decides.
    this.#stream = make({ ...buffers, ...options[plants > pagePlants ? 'long' : 'page'] })
    this.#finish = finish
    // Steps reject with their own errors; later ones do not matter.
    this.#stream.on('error', () => {})
  }

  /** Adds bytes of the list; resolves to compressed bytes, possibly none. */
  add(bytes: Buffer): Promise<Buffer> {
    return this.#step((done) => this.#stream.write(bytes, done))
  }

  /** Resolves to the rest. */
  async finish(): Promise<Buffer> {
    return this.#step((done) => this.#stream.flush(this.#finish, done))
  }

  close(): void {
    this.#stream.destroy()
  }

  async #step(begin: (done: (error?: Error | null) => void) => void): Promise<Buffer> {
    const stream = this.#stream
    await new Promise<void>((resolve, reject) => {
      // Node does not call back when a step fails.
      stream.once('error', reject)
      begin((error) => {
        stream.off('error', reject)
        if (error) reject(error)
        else resolve()
      })
    })
    return stream.read() ?? nothing
  }
}

/** Compresses a page of so many plants. */
export async function compressPage(page: Buffer, coding: Compression, plants: number): Promise<Buffer> {
  const codec = new Codec(coding, plants)
  try {
    const [most, rest] = [await codec.add(page), await codec.finish()]
    // A buffer of its own: cached bytes of a pool, or of the codec, would keep all of that alive.
    const made = Buffer.allocUnsafeSlow(most.length + rest.length)
    rest.copy(made, most.copy(made))
    return made
  } finally {
    codec.close()
  }
}

/** `codec`: is closed with the stream; `owner`: whose turns the steps take among the `jobs`. */
export type ListCompression = { codec: Codec; jobs: FairPool; owner: string }

/** Compresses a long list part by part, as its reader takes it; one part is made ahead. */
export function compressList(list: Readable, { codec, jobs, owner }: ListCompression): Readable {
  async function* compress() {
    for await (const part of list) {
      const bytes = await jobs.run(owner, () => codec.add(part))
      // The codec may need more parts before its first output.
      if (bytes.length > 0) yield bytes
    }
    yield await jobs.run(owner, () => codec.finish())
  }
  return Readable.from(compress(), { objectMode: false, highWaterMark: 1 }).once('close', () => {
    list.destroy()
    codec.close()
  })
}
