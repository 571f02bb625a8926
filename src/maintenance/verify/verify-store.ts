// Reads a whole store and checks it against all promises of the service. It changes nothing, and a service may run on
// the store meanwhile: the log is checked up to the head at the beginning.
import { createHash } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { scannedPlants } from '../../limits.ts'
import { engineOf } from '../../store/engines.ts'
import { openView } from '../../store/open.ts'
import { StoreUnavailable } from '../../store/store.ts'
import type { Range, StoreView } from '../../store/view.ts'
import { checkIntegrity } from './check-integrity.ts'
import { checkPage } from './check-range.ts'
import { type Fault, Faults } from './faults.ts'
import { checkStructure, type Structure } from './structure.ts'

export type VerifyReport = {
  engine: string
  schemaVersion: number
  plants: number
  /** Number of plants without a checksum, written by a version that had none. */
  unchecked: number
  /** SHA-256 over a line per plant, as `copy` prints it; null when not all could be read. */
  checksum: string | null
  faultCount: number
  /** The first faults. */
  faults: readonly Fault[]
}

export type VerifyOptions = {
  /** Aborts the check with the error to reject with. */
  signal?: AbortSignal
  onProgress?: (done: number, total: number) => void
}

/** Verifies a store. Rejects with StoreRefused when there is none, or one of a newer version. */
export async function verifyStore(url: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  const view = await openView(url)
  const check = new Check(view, options)
  try {
    await check.run(url)
    return { engine: engineOf(url).name, ...check.report() }
  } finally {
    await view.close()
  }
}

class Check {
  readonly #view: StoreView
  readonly #options: VerifyOptions
  readonly #faults = new Faults()
  readonly #hash = createHash('sha256')
  #isComplete = true
  #plants = 0
  #done = 0
  #unchecked = 0

  constructor(view: StoreView, options: VerifyOptions) {
    this.#view = view
    this.#options = options
  }

  async run(url: string): Promise<void> {
    const { integrity } = this.#view.dialect
    const ofFile = integrity ? checkIntegrity(url, integrity, this.#options.signal) : []
    const [faults] = await Promise.all([ofFile, this.#checkLog()])
    this.#faults.add(...faults)
  }

  async #checkLog(): Promise<void> {
    const { head, plants } = await this.#checkStructure()
    this.#plants = plants
    // The number of plants bounds the loop when a damaged head is far off.
    for (let after = 0; after < head && this.#done < plants; ) {
      // Reading SQLite never yields: let signals be handled.
      await turn()
      this.#options.signal?.throwIfAborted()
      after = await this.#checkPage({ after, last: head })
      this.#options.onProgress?.(this.#done, this.#plants)
    }
  }

  /** Checks the structure, which may be unreadable in a damaged file. */
  async #checkStructure(): Promise<Structure> {
    try {
      const structure = await checkStructure(this.#view)
      this.#faults.add(...structure.faults)
      return structure
    } catch (error) {
      this.#noteUnread('the database', error)
      return { head: 0, plants: 0, faults: [] }
    }
  }

  /** Checks a page; resolves to its last position, after which the next page begins. */
  async #checkPage(range: Range): Promise<number> {
    try {
      const { last, text, plants, unchecked, faults } = await checkPage(this.#view, range)
      this.#faults.add(...faults)
      this.#unchecked += unchecked
      this.#hash.update(text)
      this.#done += plants
      return last
    } catch (error) {
      const last = Math.min(range.after + scannedPlants, range.last)
      this.#noteUnread(`plants ${range.after + 1} to ${last}`, error)
      this.#done += scannedPlants
      return last
    }
  }

  /** Notes an error of the database as a fault; rethrows others. */
  #noteUnread(what: string, error: unknown): void {
    if (!(error instanceof StoreUnavailable)) throw error
    this.#faults.add({ detail: `${what} cannot be read: ${error.message}` })
    this.#isComplete = false
  }

  report(): Omit<VerifyReport, 'engine'> {
    return {
      schemaVersion: this.#view.version,
      plants: this.#plants,
      unchecked: this.#unchecked,
      checksum: this.#isComplete ? this.#hash.digest('hex') : null,
      faultCount: this.#faults.count,
      faults: this.#faults.named,
    }
  }
}
