// The writer thread: opens the file, then answers requests. Batches that wait at one moment, from any threads, are
// committed together. After an I/O error it reopens the file.
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { type OpenOptions, openDatabase } from '../database.ts'
import type { OpenFiles } from '../files/files.ts'
import { describeFailure, Transactions } from './transactions.ts'
import type { Answer, Order, Request, Result, Started, WriterEvent } from './writer-messages.ts'

/** An order, and the port for its answer. */
type Waiting<T = Order> = { order: T; port: MessagePort }

const options = workerData as OpenOptions
const main = parentPort as NonNullable<typeof parentPort>

/** Undefined from an I/O error until the next request. */
let transactions: Transactions | undefined
let files: OpenFiles
let hasFailed = false
let waiting: Waiting[] = []

/** Serves the requests of a port from now on. */
function listen(port: MessagePort): void {
  port.on('message', (order: Order) => {
    // Deferred, to gather messages of all ports in one turn of the event loop.
    if (waiting.length === 0) setImmediate(doAll)
    waiting.push({ order, port })
  })
}

function doAll(): void {
  const orders = waiting
  waiting = []
  while (orders.length > 0) {
    const next = takeNext(orders)
    if (next[0]?.order === 'close') end()
    doTogether(next as Waiting<Request>[])
  }
}

/** Takes the batches at the beginning of the queue, which are done together, or else its first order. */
function takeNext(orders: Waiting[]): Waiting[] {
  const batches = orders.findIndex(({ order }) => order === 'close' || !('items' in order))
  return orders.splice(0, batches < 0 ? orders.length : Math.max(1, batches))
}

function end(): never {
  transactions?.close()
  process.exit()
}

function doTogether(requests: Waiting<Request>[]): void {
  const results = run(requests.map(({ order }) => order))
  const failure = results.find((result) => 'failed' in result)
  if (failure) tell(failure)
  else if (hasFailed) tell('recovered')
  hasFailed = failure !== undefined
  for (const [index, { order, port }] of requests.entries())
    port.postMessage({ number: order.number, ...(results[index] as Result) } satisfies Answer)
  if (!failure?.broken) return
  transactions?.close()
  transactions = undefined
}

function run(requests: Request[]): Result[] {
  try {
    transactions ??= reopen()
  } catch (error) {
    return requests.map(() => describeFailure(error, 'nothing-added'))
  }
  return transactions.do(requests)
}

function reopen(): Transactions {
  files.check()
  const opened = openDatabase({ ...options, mustExist: true }, files)
  tell('reopened')
  return new Transactions(opened)
}

function tell(message: Started | WriterEvent): void {
  main.postMessage(message)
}

try {
  const opened = openDatabase(options)
  files = opened.files
  transactions = new Transactions(opened)
  main.on('message', listen)
  tell({ opened: files.ids })
} catch (error) {
  tell({ refused: (error as Error).message })
  process.exit()
}
