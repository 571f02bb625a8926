// The other threads of this process that share its connections to a SQLite file, as the main thread sees them.
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import { releaseMs } from '../../limits.ts'
import { StoreUnavailable } from '../store.ts'
import type { Bind, Failure, FromBranch, ToBranch } from './messages.ts'

export type ShareEvents = {
  /** What a thread needs to work on the files, once they are usable. Rejects with StoreUnavailable. */
  bind: (looker: number) => Promise<Bind>
  /** The writer could not do a request of such a thread. */
  failed: (failure: Failure) => void
  /** A read of such a thread failed: are the files still there? */
  check: () => void
  /** The writer did a request of such a thread, after one that had failed. */
  holds: () => void
  /** Such a thread has ended, or closed its store. */
  ended: (looker: number) => void
}

export class Shares {
  readonly #events: ShareEvents
  /** With the numbers that they have for the wal-index. */
  readonly #ports = new Map<MessagePort, number>()
  /** What is waited for of those that have not let go yet. */
  readonly #released = new Map<MessagePort, () => void>()

  constructor(events: ShareEvents) {
    this.#events = events
  }

  /** The other end of a new share. A thread that ends has its port closed, and no share any more. `looker`: see IndexLock. */
  add(looker: number): MessagePort {
    const { port1: port, port2 } = new MessageChannel()
    this.#ports.set(port, looker)
    port.on('message', (message: FromBranch) => this.#take(port, message))
    port.on('close', () => {
      this.#ports.delete(port)
      this.#released.get(port)?.()
      this.#events.ended(looker)
    })
    port.unref()
    return port2
  }

  /** Resolves when no other thread has the files open. Rejects with StoreUnavailable when one does not let go. */
  async release(): Promise<void> {
    const all = Promise.all([...this.#ports.keys()].map((port) => this.#release(port)))
    const late = Promise.withResolvers<never>()
    const timer = setTimeout(
      /* c8 ignore next: a thread that hangs */
      () => late.reject(new StoreUnavailable('nothing-added', 'a thread has the files open still')),
      releaseMs,
    )
    await Promise.race([all, late.promise]).finally(() => clearTimeout(timer))
  }

  #release(port: MessagePort): Promise<void> {
    return new Promise<void>((resolve) => {
      this.#released.set(port, resolve)
      post(port, 'release')
    }).then(() => {
      this.#released.delete(port)
    })
  }

  #take(port: MessagePort, message: FromBranch): void {
    if (message === 'bind') void this.#bind(port)
    else if (message === 'released') this.#released.get(port)?.()
    else if (message === 'check') this.#events.check()
    else if (message === 'holds') this.#events.holds()
    else this.#events.failed(message.failed)
  }

  async #bind(port: MessagePort): Promise<void> {
    try {
      const bind = await this.#events.bind(this.#ports.get(port) as number)
      port.postMessage({ bind } satisfies ToBranch, [bind.writer])
    } catch (error) {
      post(port, { unavailable: (error as Error).message })
    }
  }
}

function post(port: MessagePort, message: ToBranch): void {
  port.postMessage(message)
}
