// Readiness: false until the service listens, during a shutdown, and while its store cannot be written.

import { readyMs } from '../../limits.ts'
import { makeInTime } from '../../runtime/with-timeout.ts'
import type { Store } from '../../store/engine.ts'

export class Health {
  #isWritable: (() => Promise<true | undefined>) | undefined
  #isDraining = false
  #service: { readonly hasHung: boolean } | undefined

  /** From now on: ready while the store can be written, live while no thread hangs. */
  serve(store: Pick<Store, 'ready'>, service?: { readonly hasHung: boolean }): void {
    this.#service = service
    this.#isWritable = makeInTime(() => store.ready().then(() => true), readyMs)
  }

  /** From now on: not ready. */
  drain(): void {
    this.#isDraining = true
  }

  /** False when only a restart helps. */
  get isLive(): boolean {
    return !this.#service?.hasHung
  }

  /** Resolves within a second to the reason for not being ready; undefined when ready. */
  async findFault(): Promise<'starting' | 'draining' | 'store-not-writable' | undefined> {
    if (this.#isDraining) return 'draining'
    if (!this.#isWritable) return 'starting'
    const isWritable = await this.#isWritable()
    // A shutdown may have begun meanwhile.
    if (this.#isDraining) return 'draining'
    return isWritable ? undefined : 'store-not-writable'
  }
}
