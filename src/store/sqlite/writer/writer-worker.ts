// The writer thread: says how the opening went, then answers each request with one message. Batches that wait at one
// moment are committed together, whichever threads they are from.
import type { DatabaseSync } from 'node:sqlite'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { StoreRefused } from '../../store.ts'
import { type OpenDatabase, openDatabase } from '../database.ts'
import { Transactions } from './transactions.ts'
import type { Answer, Failure, Opened, Order, Request, Result, ThreadOptions } from './writer-messages.ts'

const options = workerData as ThreadOptions
const main = parentPort as NonNullable<typeof parentPort>

/** An order, and where an answer goes. */
type Waiting<T = Order> = { order: T; port: MessagePort }
type Command = Exclude<Order, Request>
/** Why the thread ends. */
type Reason = Pick<Failure, 'failed' | 'code' | 'broken'>

const opened = open()
if (opened) serve(opened)
else main.close()

function open(): OpenDatabase | undefined {
  try {
    const opened = openDatabase(options)
    main.postMessage({ opened: opened.files.known } satisfies Opened)
    return opened
  } catch (error) {
    const { message } = error as Error
    const refused = error instanceof StoreRefused ? message : `cannot open ${options.path}: ${message}`
    main.postMessage({ refused } satisfies Opened)
    return undefined
  }
}

function serve({ db, files }: OpenDatabase): void {
  const transactions = new Transactions(db, files)
  const ports = new Set<MessagePort>()
  let waiting: Waiting[] = []
  listen(main)

  function listen(port: MessagePort): void {
    ports.add(port)
    port.on('message', (order: Order) => {
      // Messages of the other ports are taken in the same turn of the event loop.
      if (waiting.length === 0) setImmediate(doAll)
      waiting.push({ order, port })
    })
    port.on('close', () => ports.delete(port))
  }

  function doAll(): void {
    const orders = waiting
    waiting = []
    let reason: Reason | undefined
    while (orders.length > 0 && !reason) {
      const requests = takeTogether(orders)
      reason = requests.length > 0 ? answer(requests) : obey((orders.shift() as Waiting<Command>).order)
    }
    if (reason) end(reason)
  }

  /** Returns why the thread has to end, if it has to. */
  function obey(command: Command): Reason | undefined {
    if (command === 'close') return { failed: 'the store is closed', code: 0 }
    listen(command.port)
    return undefined
  }

  /** The same. */
  function answer(requests: Waiting<Request>[]): Failure | undefined {
    const results = transactions.do(requests.map(({ order }) => order))
    for (const [index, request] of requests.entries()) post(request, results[index] as Result)
    return results.find((result): result is Failure => 'broken' in result && result.broken === true)
  }

  /** Every port hears it behind its answers: what is not answered by then has not begun. */
  function end(reason: Reason): void {
    if (files.findFault() !== undefined) emptyLog(db)
    db.close()
    for (const port of ports) {
      port.postMessage({ ...reason, number: 0, outcome: 'nothing-added' } satisfies Answer)
      port.close()
    }
  }
}

/**
 * SQLite leaves the write-ahead log of a file that was moved as it is, at the old path: with the next file there it would
 * be taken for that one's. Emptied into its own file it harms nobody.
 */
function emptyLog(db: DatabaseSync): void {
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    /* c8 ignore next 3: the disk fails as well */
  } catch {
    // The loss itself is what the operator has heard of.
  }
}

function post({ order: { number }, port }: Waiting<Request>, result: Result): void {
  port.postMessage({ number, ...result } satisfies Answer)
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
