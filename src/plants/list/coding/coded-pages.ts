// Pages never change, so each is compressed once, in the thread pool, and kept beside its plain bytes. Whoever accepts
// those is not kept waiting for it.
import { problems } from '../../../../schemas/problems.ts'
import type { Coding } from '../../../http/codings.ts'
import { ProblemError } from '../../../http/problem-error.ts'
import { maxPreparedPages, maxWaitingPages, pagePlants } from '../../../limits.ts'
import type { FairPool } from '../../../runtime/fair-pool.ts'
import type { PageCache } from '../page-cache.ts'
import type { Page } from '../pages.ts'
import { Codec, type Compression } from './codec.ts'

/** A page that fits into one packet, with its head, arrives no sooner compressed. */
const fewestBytes = 1024

export class CodedPages {
  readonly #cache: PageCache
  readonly #jobs: FairPool
  /** Pages being compressed: each is compressed once. */
  readonly #making = new Map<string, Promise<Buffer>>()

  constructor(cache: PageCache, jobs: FairPool) {
    this.#cache = cache
    this.#jobs = jobs
  }

  /** The page in a coding, when it is at hand. */
  find(page: Page, coding: Compression): Buffer | undefined {
    return this.#cache.get(nameOf(page, coding))
  }

  /** In which coding a list would be answered now, as far as can be told before it is read. */
  predictCoding(page: Page, codings: readonly Coding[]): Coding {
    const best = codings[0] as Coding
    if (best === 'identity' || page.last - page.after > pagePlants || !codings.includes('identity'))
      return best
    return this.#cache.has(nameOf(page, best)) ? best : 'identity'
  }

  /** Has a page compressed for those who come later, when it is worth it and little else is at hand. */
  prepare(page: Page, coding: Compression, { bytes, owner }: { bytes: Buffer; owner: string }): void {
    if (bytes.length < fewestBytes || this.#making.size >= maxPreparedPages) return
    // Without room in the line, or memory for a codec, the page is there as it is.
    this.make(page, coding, { bytes, owner }).catch(() => {})
  }

  /**
   * A page in a coding: for a client that has to wait, since it refuses the plain bytes. Rejects with `overloaded` when
   * too much of its owner waits already: who leaves does not take back what was asked for.
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
    // Not from the pool, nor from the codec's memory: what is kept would keep all of that.
    const made = Buffer.allocUnsafeSlow(size)
    parts[1]?.copy(made, parts[0]?.copy(made))
    return made
  } finally {
    codec.close()
  }
}
