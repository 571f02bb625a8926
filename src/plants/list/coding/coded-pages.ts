// Compressed pages. Pages never change, so each is compressed once, in the thread pool, and cached. Clients that accept
// the plain bytes do not wait for it.
import { problems } from '../../../../schemas/problems.ts'
import type { Coding } from '../../../http/codings.ts'
import { ProblemError } from '../../../http/problem-error.ts'
import { maxPreparedPages, maxWaitingPages, pagePlants } from '../../../limits.ts'
import type { FairPool } from '../../../runtime/fair-pool.ts'
import type { Page, PageCache } from '../pages.ts'
import { Codec, type Compression } from './codec.ts'

/** A page that fits into one packet with its head arrives no sooner when compressed. */
const fewestBytes = 1024

export class CodedPages {
  readonly #cache: PageCache
  readonly #jobs: FairPool
  /** Pages being compressed, shared by all that ask for them. */
  readonly #making = new Map<string, Promise<Buffer>>()

  constructor(cache: PageCache, jobs: FairPool) {
    this.#cache = cache
    this.#jobs = jobs
  }

  /** Returns the page in a coding if it is cached. */
  find(page: Page, coding: Compression): Buffer | undefined {
    return this.#cache.look(nameOf(page, coding))
  }

  /** Predicts the coding in which a list would be sent now, before it is read. */
  predictCoding(page: Page, codings: readonly Coding[]): Coding {
    const best = codings[0] as Coding
    if (best === 'identity' || page.last - page.after > pagePlants || !codings.includes('identity'))
      return best
    return this.#cache.has(nameOf(page, best)) ? best : 'identity'
  }

  /** Compresses a page for later requests, if it is large enough and few others are being compressed. */
  prepare(page: Page, coding: Compression, { bytes, owner }: { bytes: Buffer; owner: string }): void {
    if (bytes.length < fewestBytes || this.#making.size >= maxPreparedPages) return
    // Without room in the queue, or memory for a codec, the page stays uncompressed.
    this.make(page, coding, { bytes, owner }).catch(() => {})
  }

  /**
   * Compresses a page for a client that refuses the plain bytes, and so has to wait. Rejects with `overloaded` when too
   * many pages of its owner wait already, those of clients that have left included.
   */
  make(page: Page, coding: Compression, { bytes, owner }: { bytes: Buffer; owner: string }): Promise<Buffer> {
    const name = nameOf(page, coding)
    const making = this.#making.get(name)
    if (making) return making
    if (this.#jobs.waiting(owner) >= maxWaitingPages)
      return Promise.reject(new ProblemError(problems.tooManyCodings))
    const compress = async () => {
      const made = await compressPage(page, coding, bytes)
      this.#cache.set(name, made)
      return made
    }
    const made = this.#jobs.run(owner, compress).finally(() => this.#making.delete(name))
    this.#making.set(name, made)
    return made
  }
}

function nameOf({ name }: Page, coding: Compression): string {
  return `${name}.${coding}`
}

async function compressPage({ after, last }: Page, coding: Compression, bytes: Buffer): Promise<Buffer> {
  const codec = new Codec(coding, last - after)
  try {
    const parts = [await codec.add(bytes), await codec.finish()]
    const size = parts.reduce((sum, part) => sum + part.length, 0)
    // A buffer of its own: cached bytes of a pool, or of the codec, would keep all of that alive.
    const made = Buffer.allocUnsafeSlow(size)
    parts[1]?.copy(made, parts[0]?.copy(made))
    return made
  } finally {
    codec.close()
  }
}
