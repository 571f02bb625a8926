// Reads a whole store and holds it against all that the service promises of one. It changes nothing, and a service may be
// at work on the store meanwhile: what is checked is the log up to the plant that was the last when it began.
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
  /** Number of plants without a checksum: a version wrote them that had none. */
  unchecked: number
  /** SHA-256 over the line of each plant, as `copy` prints it; null when not all of them could be read. */
  checksum: string | null
  faultCount: number
  /** The first of them. */
  faults: readonly Fault[]
}

export type VerifyOptions = {
  /** Aborts with the error that the check is to reject with. */
  signal?: AbortSignal
  onProgress?: (done: number, total: number) => void
}

/** Rejects with StoreRefused when there is no store, or one of a newer version. */
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
    // The number of plants bounds the loop where a damaged position is far off and nothing up to it can be read.
    for (let after = 0; after < head && this.#done < plants; ) {
      // SQLite is read without a pause, and a signal is to be heard nevertheless.
      await turn()
      this.#options.signal?.throwIfAborted()
      after = await this.#checkPage({ after, last: head })
      this.#options.onProgress?.(this.#done, this.#plants)
    }
  }

  /** The structure of a damaged file may be unreadable. */
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

  /** Resolves to where the next page begins. */
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

  /** An error that is not the database's is thrown on. */
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
