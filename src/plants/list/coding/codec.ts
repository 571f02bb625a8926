// Compresses lists. Whatever pieces a list comes in, and whether it was cached or streamed, its bytes in one
// coding are the same: its strong entity tag stands for them (RFC 9110, section 8.8.1).
import { createHash } from 'node:crypto'
import { createBrotliCompress, createGzip, createZstdCompress, constants as zlib } from 'node:zlib'
import type { Coding } from '../../../http/codings.ts'
import { pagePlants } from '../../../limits.ts'

export type Compression = Exclude<Coding, 'identity'>

/** Pages are compressed once for many, longer lists each time anew. Only the count says which, as in the tag. */
type Level = 'page' | 'long'

const kibibyte = 1024
/** Size of the output buffers. */
const chunkBytes = 64 * kibibyte

// Measured on 100 plants, and on 400,000: docs/decisions/0020-codings.md.
const gzipLevels = { page: 6, long: 2 }
const zstdLevels = { page: 9, long: 1 }
const brotliLevel = 5
/** As powers of two: most of what a codec takes of memory. Larger tables would make no page smaller, and cost time. */
const zstdWindows = { page: 18, long: 19 }
const zstdTables = 16
/** Twice as much is gathered before anything comes out: less than one part of a list, whose first bytes are waited for. */
const brotliWindow = 16
/** Any constant will do: by default it is the size of the first piece, and the bytes depend on that. */
const brotliSizeHint = 256 * kibibyte

const codecs = {
  zstd: {
    finish: zlib.ZSTD_e_end,
    version: [process.versions.zstd, zstdLevels, zstdWindows, zstdTables],
    make: (level: Level) =>
      createZstdCompress({
        ...streamOptions(),
        params: {
          [zlib.ZSTD_c_compressionLevel]: zstdLevels[level],
          [zlib.ZSTD_c_windowLog]: zstdWindows[level],
          [zlib.ZSTD_c_hashLog]: zstdTables,
          [zlib.ZSTD_c_chainLog]: zstdTables,
        },
      }),
  },
  br: {
    finish: zlib.BROTLI_OPERATION_FINISH,
    version: [process.versions.brotli, brotliLevel, brotliWindow, brotliSizeHint],
    make: () =>
      createBrotliCompress({
        ...streamOptions(),
        params: {
          [zlib.BROTLI_PARAM_QUALITY]: brotliLevel,
          [zlib.BROTLI_PARAM_LGWIN]: brotliWindow,
          [zlib.BROTLI_PARAM_SIZE_HINT]: brotliSizeHint,
        },
      }),
  },
  gzip: {
    finish: zlib.Z_FINISH,
    version: [process.versions.zlib, gzipLevels],
    make: (level: Level) => createGzip({ ...streamOptions(), level: gzipLevels[level] }),
  },
}

/** Whatever a part becomes has room: a step takes all of a part, and then hands all of that out. */
function streamOptions() {
  return { chunkSize: chunkBytes, readableHighWaterMark: Number.MAX_SAFE_INTEGER }
}

/**
 * Names the bytes that a codec makes. They may differ where its version does, the count from which lists are long, or the
 * processor; the head of gzip names the system.
 */
export const codecNames = { zstd: nameCodec('zstd'), br: nameCodec('br'), gzip: nameCodec('gzip') }

function nameCodec(coding: Compression): string {
  const version = JSON.stringify([codecs[coding].version, pagePlants, process.platform, process.arch])
  return `${coding}-${createHash('sha256').update(version).digest('base64url').slice(0, 4)}`
}

const nothing = Buffer.alloc(0)

/** Compresses one list. Each step is one job of the thread pool; the next may begin when it is done. */
export class Codec {
  readonly #stream: ReturnType<(typeof codecs)[Compression]['make']>
  readonly #finish: number

  /** `plants`: how many the list has. */
  constructor(coding: Compression, plants: number) {
    const { make, finish } = codecs[coding]
    this.#stream = make(plants > pagePlants ? 'long' : 'page')
    this.#finish = finish
    // A step rejects with what goes wrong in it; after the last one nobody asks.
    this.#stream.on('error', () => {})
  }

  /** Takes some bytes of the list, gives some of what it is compressed, or none yet. */
  add(bytes: Buffer): Promise<Buffer> {
    return this.#step((done) => this.#stream.write(bytes, done))
  }

  /** Gives the rest. */
  async finish(): Promise<Buffer> {
    return this.#step((done) => this.#stream.flush(this.#finish, done))
  }

  close(): void {
    this.#stream.destroy()
  }

  async #step(begin: (done: (error?: Error | null) => void) => void): Promise<Buffer> {
    const stream = this.#stream
    await new Promise<void>((resolve, reject) => {
      // Node calls nobody back whose step fails.
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
