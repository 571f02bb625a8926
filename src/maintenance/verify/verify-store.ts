// Reads a whole store and checks it against all promises of the service. It changes nothing, and a service may run on
// the store meanwhile: the log is checked up to the head at the beginning.
import { createHash } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { scannedPlants } from '../../limits.ts'
import { engineOf } from '../../store/engines.ts'
import { withView } from '../../store/open.ts'
import { StoreUnavailable } from '../../store/store.ts'
import type { StoreView } from '../../store/view.ts'
import { checkIntegrity } from './check-integrity.ts'
import { checkPage } from './check-page.ts'
import { type Fault, Faults } from './faults.ts'
import { checkStructure } from './structure.ts'

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
export function verifyStore(url: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  return withView(url, async (view) => {
    const { integrity } = view.dialect
    const ofFile = integrity ? checkIntegrity(url, integrity, options.signal) : []
    const faults = new Faults()
    const [found, log] = await Promise.all([ofFile, checkLog(view, faults, options)])
    faults.add(...found)
    const { name: engine } = engineOf(url)
    return { engine, schemaVersion: view.version, ...log, faultCount: faults.count, faults: faults.named }
  })
}

/** Checks the structure, then the plants, of which pages may be unreadable in a damaged file. */
async function checkLog(view: StoreView, faults: Faults, { signal, onProgress }: VerifyOptions) {
  const hash = createHash('sha256')
  let [done, unchecked, isComplete] = [0, 0, true]
  /** Notes an error of the database as a fault; rethrows others. */
  const noteUnread = (what: string) => (error: unknown) => {
    if (!(error instanceof StoreUnavailable)) throw error
    faults.add({ detail: `${what} cannot be read: ${error.message}` })
    isComplete = false
  }
  const structure = await checkStructure(view).catch(noteUnread('the database'))
  const { head, plants, faults: found } = structure ?? { head: 0, plants: 0, faults: [] }
  faults.add(...found)
  // The number of plants bounds the loop when a damaged head is far off.
  for (let after = 0; after < head && done < plants; ) {
    // Reading SQLite never yields: let signals be handled.
    await turn()
    signal?.throwIfAborted()
    const last = Math.min(after + scannedPlants, head)
    const page = (await checkPage(view, { after, last: head }).catch(
      noteUnread(`plants ${after + 1} to ${last}`),
    )) ?? { last, plants: scannedPlants, text: '', unchecked: 0, faults: [] }
    faults.add(...page.faults)
    hash.update(page.text)
    unchecked += page.unchecked
    done += page.plants
    after = page.last
    onProgress?.(done, plants)
  }
  return { plants, unchecked, checksum: isComplete ? hash.digest('hex') : null }
}
