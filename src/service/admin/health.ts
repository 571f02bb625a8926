// Readiness: false before the process listens, once it is to end, and while its store cannot be written.

import { readyMs } from '../../limits.ts'
import type { Store } from '../../store/store.ts'
import { makeInTime } from './in-time.ts'

export type Unready = 'starting' | 'draining' | 'store-not-writable'

export class Health {
  #isWritable: (() => Promise<boolean | undefined>) | undefined
  #isDraining = false
  #service = { hasHung: false }

  /** From now on it is ready whenever the store can be written, and live while no thread hangs. */
  serve(store: Pick<Store, 'ready'>, service: { readonly hasHung: boolean } = { hasHung: false }): void {
    this.#service = service
    this.#isWritable = makeInTime(async () => {
      await store.ready()
      return true
    }, readyMs)
  }

  /** From now on it is not ready any more. */
  drain(): void {
    this.#isDraining = true
  }

  /** When it is not, only a restart helps. */
  get isLive(): boolean {
    return !this.#service.hasHung
  }

  get isDraining(): boolean {
    return this.#isDraining
  }

  /** Why no requests should be sent here; undefined when they should. Resolves within a second. */
  async findFault(): Promise<Unready | undefined> {
    if (this.#isDraining) return 'draining'
    if (!this.#isWritable) return 'starting'
    const isWritable = await this.#isWritable()
    // It may have been told to end meanwhile.
    if (this.#isDraining) return 'draining'
    return isWritable ? undefined : 'store-not-writable'
  }
}
