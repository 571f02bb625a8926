// The way to the writer thread: sends it batches, and starts it again when it died.
import { Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import { type Entry, type Outcome, StoreRefused, type Value } from '../store.ts'

export type WriterRequest =
  | { append: (string | number | undefined)[] }
  | { text: string; values: Record<string, Value> }
  | 'close'

/** `refused` and `failed` are said by the database, in words for the operator's log. */
export type WriterAnswer =
  | { done: Outcome[] | number }
  | { refused: string }
  | { failed: string; code: number }

type Waiting = { resolve: (done: Outcome[] | number) => void; reject: (error: Error) => void }

export class SqliteWriter {
  readonly #path: string
  readonly #logger: Logger
  #worker: Worker | undefined
  /** In the order of the requests: the thread answers them one by one. The first is for the start. */
  #waiting: Waiting[] = []

  constructor(path: string, logger: Logger) {
    this.#path = path
    this.#logger = logger
  }

  /** Resolves when the database is open and its schema up to date. Throws StoreRefused. */
  async ready(): Promise<void> {
    await this.#start()
  }

  async append(entries: Entry[]): Promise<Outcome[]> {
    const flat = new Array<string | number | undefined>(entries.length * 2)
    for (let i = 0; i < entries.length; i++) {
      const entry = entries[i] as Entry
      flat[2 * i] = entry.item
      flat[2 * i + 1] = entry.id
    }
    return (await this.#send({ append: flat })) as Outcome[]
  }

  async execute(text: string, values: Record<string, Value>): Promise<number> {
    return (await this.#send({ text, values })) as number
  }

  async close(): Promise<void> {
    if (this.#worker) await this.#send('close')
  }

  async #send(request: WriterRequest): Promise<Outcome[] | number> {
    if (!this.#worker)
      await this.#start().catch(({ message }: Error) => {
        throw this.#unavailable({ failed: message, code: 0 })
      })
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
      this.#worker?.postMessage(request)
    })
  }

  #start(): Promise<Outcome[] | number> {
    const worker = new Worker(new URL('./thread.ts', import.meta.url), { workerData: this.#path })
    this.#worker = worker
    worker.on('message', (answer: WriterAnswer) => this.#answer(answer))
    worker.on('error', (error) => this.#logger.error({ err: error }, 'the writer thread failed'))
    worker.on('exit', (code) => this.#worker === worker && this.#ended(code))
    return new Promise((resolve, reject) => {
      this.#waiting.push({ resolve, reject })
    })
  }

  #answer(answer: WriterAnswer): void {
    const waiting = this.#waiting.shift()
    if ('done' in answer) waiting?.resolve(answer.done)
    else if ('failed' in answer) waiting?.reject(this.#unavailable(answer))
    else {
      // The thread is on its way out.
      this.#worker = undefined
      waiting?.reject(new StoreRefused(answer.refused))
    }
  }

  /** The transaction was rolled back: nothing was appended. */
  #unavailable({ failed, code }: { failed: string; code: number }): ProblemError {
    this.#logger.error({ code }, `the database failed: ${failed}`)
    const detail = 'The store cannot take plants now; nothing was added.'
    return new ProblemError('unavailable', detail, { headers: { 'Retry-After': '1' } })
  }

  #ended(code: number): void {
    this.#worker = undefined
    const waiting = this.#waiting
    this.#waiting = []
    if (waiting.length > 0)
      this.#logger.error({ code }, 'the writer thread ended; the next plant starts it again')
    const detail = 'The store stopped while it worked on the request; whether the plant was added is unknown.'
    for (const { reject } of waiting)
      reject(new ProblemError('unavailable', detail, { headers: { 'Retry-After': '1' } }))
  }
}
