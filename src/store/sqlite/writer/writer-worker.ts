// The writer thread: says how the opening went, then answers each request with one message. Batches that wait at one
// moment are committed together, whichever threads they are from.
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { StoreRefused } from '../store.ts'
import { type OpenDatabase, openDatabase } from './database.ts'
import { IndexLock } from './index-lock.ts'
import type { Answer, Done, Failure, Opened, Order, Request, ThreadOptions } from './messages.ts'
import { Transactions } from './transactions.ts'
import { WalIndex } from './wal-index.ts'

const options = workerData as ThreadOptions
const main = parentPort as NonNullable<typeof parentPort>

/** An order, and where an answer goes. */
type Waiting<T = Order> = { order: T; port: MessagePort }

const opened = open()
if (opened) serve(opened)
else main.close()

function open(): OpenDatabase | undefined {
  try {
    const opened = openDatabase(options)
    main.postMessage({ opened: opened.ids } satisfies Opened)
    return opened
  } catch (error) {
    const { message } = error as Error
    const refused = error instanceof StoreRefused ? message : `cannot open ${options.path}: ${message}`
    main.postMessage({ refused } satisfies Opened)
    return undefined
  }
}

function serve(opened: OpenDatabase): void {
  const ports = new Set<MessagePort>()
  let waiting: Waiting[] = []
  let transactions: Transactions | undefined
  listen(main)

  function listen(port: MessagePort): void {
    ports.add(port)
    port.on('message', (order: Order) => {
      // What the other ports have is taken in the same turn of the event loop.
      if (waiting.length === 0) setImmediate(doAll)
      waiting.push({ order, port })
    })
    port.on('close', () => ports.delete(port))
  }

  function doAll(): void {
    const orders = waiting
    waiting = []
    while (orders.length > 0 && ports.size > 0) {
      const requests = takeTogether(orders)
      if (requests.length > 0) answer(requests)
      else obey((orders.shift() as Waiting<Exclude<Order, Request>>).order)
    }
  }

  /** The main thread has told of the index before. */
  function answer(requests: Waiting<Request>[]): void {
    const result = (transactions as Transactions).do(requests.map(({ order }) => order))
    // What one of them failed for, its deadline for instance, is no reason for those of other threads to fail.
    if (requests.length > 1 && 'failed' in result && canBeRepeated(result)) {
      for (const request of requests) if (ports.size > 0) answer([request])
      return
    }
    requests.forEach(({ order: { number }, port }, index) => {
      const answer = 'failed' in result ? result : { done: result.done[index] as Done }
      port.postMessage({ number, ...answer } satisfies Answer)
    })
    if (!('broken' in result && result.broken)) return
    // Whichever threads it answers: who starts the next writer has to know before this one has ended.
    main.postMessage({ number: 0, ...result } satisfies Answer)
    end()
  }

  function obey(order: Exclude<Order, Request>): void {
    if (order === 'close') end()
    else if ('port' in order) listen(order.port)
    else {
      const index = new WalIndex(order.descriptor)
      transactions = new Transactions(options.path, opened, { index, lock: new IndexLock(order.lock) })
    }
  }

  function end(): void {
    transactions?.end()
    opened.db.close()
    for (const port of ports) port.close()
    ports.clear()
  }
}

/** Nothing was added, and the database is still good. */
function canBeRepeated({ outcome, lost, broken }: Failure): boolean {
  return outcome === 'nothing-added' && !lost && !broken
}

/** The batches that are first in line, or the one other request; none when it is something else that is first. */
function takeTogether(orders: Waiting[]): Waiting<Request>[] {
  const end = orders.findIndex(({ order }) => !isBatch(order))
  const count = end === 0 && isRequest((orders[0] as Waiting).order) ? 1 : end
  return orders.splice(0, count < 0 ? orders.length : count) as Waiting<Request>[]
}

function isRequest(order: Order): order is Request {
  return order !== 'close' && 'number' in order
}

function isBatch(order: Order): boolean {
  return order !== 'close' && 'append' in order
}
