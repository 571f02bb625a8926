// The other threads of this process that share its connections to a SQLite file, as the main thread sees them.
import { once } from 'node:events'
import { MessageChannel, type MessagePort } from 'node:worker_threads'
import type { Attachment, Failure, FromClient, ToClient } from './writer/writer-messages.ts'

export type ServerEvents = {
  /** Gives a thread access to the files, once they are usable. Rejects with StoreUnavailable. */
  attach: () => Promise<Attachment>
  /** The writer could not do a request of such a thread. */
  failed: (failure: Failure) => void
  /** A read of such a thread failed: are the files still there? */
  check: () => void
  /** The writer did a request of such a thread, after one that had failed. */
  recovered: () => void
}

export class SharedStoreServer {
  readonly #events: ServerEvents
  readonly #ports = new Set<MessagePort>()

  constructor(events: ServerEvents) {
    this.#events = events
  }

  /** Returns the port for another thread. A thread that ends has its port closed, and is forgotten. */
  add(): MessagePort {
    const { port1: port, port2 } = new MessageChannel()
    this.#ports.add(port)
    port.on('message', (message: FromClient) => this.#take(port, message))
    port.on('close', () => this.#ports.delete(port))
    port.unref()
    return port2
  }

  /** Resolves when no other thread has the files open. */
  async close(): Promise<void> {
    const closed = [...this.#ports].map((port) => once(port, 'close'))
    for (const port of this.#ports) post(port, 'close')
    await Promise.all(closed)
  }

  #take(port: MessagePort, message: FromClient): void {
    if (message === 'attach') void this.#attach(port)
    else if (message === 'check') this.#events.check()
    else if (message === 'recovered') this.#events.recovered()
    else this.#events.failed(message.failed)
  }

  async #attach(port: MessagePort): Promise<void> {
    try {
      const attach = await this.#events.attach()
      port.postMessage({ attach } satisfies ToClient, [attach.writer])
      /* c8 ignore next 3: the writer cannot be started in the moment in which a thread opens the store */
    } catch (error) {
      post(port, { unavailable: (error as Error).message })
    }
  }
}

function post(port: MessagePort, message: ToClient): void {
  port.postMessage(message)
}
