// The writer thread: opens the file, then answers requests. Batches that wait at one moment, from any threads, are
// committed together. After an I/O error it reopens the file.
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { type OpenDatabase, openDatabase } from '../database.ts'
import type { OpenFiles } from '../files/files.ts'
import { describeFailure, Transactions } from './transactions.ts'
import type {
  Answer,
  Failure,
  Order,
  Request,
  Result,
  Started,
  ThreadOptions,
  WriterEvent,
} from './writer-messages.ts'

/** An order, and the port for its answer. */
type Waiting<T = Order> = { order: T; port: MessagePort }

const options = workerData as ThreadOptions
const main = parentPort as NonNullable<typeof parentPort>

class Writer {
  readonly #files: OpenFiles
  /** Undefined from an I/O error until the next request. */
  #open: Transactions | undefined
  #hasFailed = false
  #waiting: Waiting[] = []

  constructor(opened: OpenDatabase) {
    this.#files = opened.files
    this.#open = new Transactions(opened)
    this.#listen(main)
  }

  #listen(port: MessagePort): void {
    port.on('message', (order: Order) => {
      // Deferred, to gather messages of all ports in one turn of the event loop.
      if (this.#waiting.length === 0) setImmediate(() => this.#doAll())
      this.#waiting.push({ order, port })
    })
  }

  #doAll(): void {
    const orders = this.#waiting
    this.#waiting = []
    while (orders.length > 0) {
      const batches = takeBatches(orders)
      if (batches.length > 0) this.#doTogether(batches)
      else this.#obey(orders.shift() as Waiting)
    }
  }

  #obey({ order, port }: Waiting): void {
    if (order === 'close') this.#end()
    else if ('port' in order) this.#listen(order.port)
    else this.#doTogether([{ order, port }])
  }

  #doTogether(requests: Waiting<Request>[]): void {
    const results = this.#do(requests.map(({ order }) => order))
    const failure = results.find((result): result is Failure => 'failed' in result)
    if (failure) tell(failure)
    else if (this.#hasFailed) tell('recovered')
    this.#hasFailed = failure !== undefined
    for (const [index, { order, port }] of requests.entries())
      port.postMessage({ number: order.number, ...(results[index] as Result) } satisfies Answer)
    if (failure?.broken) this.#letGo()
  }

  #do(requests: Request[]): Result[] {
    try {
      this.#open ??= this.#reopen()
    } catch (error) {
      return requests.map(() => describeFailure(error, 'nothing-added'))
    }
    return this.#open.do(requests)
  }

  #reopen(): Transactions {
    this.#files.check()
    const opened = openDatabase({ ...options, mustExist: true }, this.#files)
    tell('reopened')
    return new Transactions(opened)
  }

  #letGo(): void {
    this.#open?.close()
    this.#open = undefined
  }

  #end(): void {
    this.#letGo()
    process.exit()
  }
}

function tell(message: Started | WriterEvent): void {
  main.postMessage(message)
}

/** Takes the batches at the beginning of the queue. */
function takeBatches(orders: Waiting[]): Waiting<Request>[] {
  const end = orders.findIndex(({ order }) => order === 'close' || !('items' in order))
  return orders.splice(0, end < 0 ? orders.length : end) as Waiting<Request>[]
}

try {
  const opened = openDatabase(options)
  new Writer(opened)
  tell({ opened: opened.files.known })
} catch (error) {
  tell({ refused: (error as Error).message })
  process.exit()
}
