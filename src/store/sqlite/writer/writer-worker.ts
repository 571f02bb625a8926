// The writer thread: says how the opening went, then answers each request with one message. Batches that wait at one
// moment are committed together, whichever threads they are from. After an I/O error it opens the file anew.
import type { DatabaseSync } from 'node:sqlite'
import { type MessagePort, parentPort, workerData } from 'node:worker_threads'
import { StoreRefused } from '../../store.ts'
import { type OpenDatabase, openDatabase } from '../database.ts'
import { Transactions } from './transactions.ts'
import type {
  Answer,
  Failure,
  FromWriter,
  Order,
  Request,
  Result,
  ThreadOptions,
  Transaction,
} from './writer-messages.ts'

const options = workerData as ThreadOptions
const main = parentPort as NonNullable<typeof parentPort>

/** An order, and where an answer goes. */
type Waiting<T = Order> = { order: T; port: MessagePort }

try {
  const opened = openDatabase(options)
  tell({ opened: opened.files.known })
  serve(opened)
} catch (error) {
  tell({ refused: describe(error) })
  main.close()
}

function serve({ db: first, files }: OpenDatabase): void {
  let open: { db: DatabaseSync; transactions: Transactions } | undefined
  let hasFailed = false
  let waiting: Waiting[] = []
  use(first)
  listen(main)

  function use(db: DatabaseSync): void {
    open = { db, transactions: new Transactions(db, files) }
  }

  function listen(port: MessagePort): void {
    port.on('message', (order: Order) => {
      // Messages of the other ports are taken in the same turn of the event loop.
      if (waiting.length === 0) setImmediate(doAll)
      waiting.push({ order, port })
    })
  }

  function doAll(): void {
    const orders = waiting
    waiting = []
    while (orders.length > 0) {
      const batches = takeBatches(orders)
      if (batches.length > 0) doTogether(batches)
      else obey(orders.shift() as Waiting)
    }
  }

  function obey({ order, port }: Waiting): void {
    if (order === 'close') end()
    else if ('port' in order) listen(order.port)
    else if ('files' in order) post({ order, port }, { done: files.known })
    else doTogether([{ order, port }])
  }

  function doTogether(requests: Waiting<Request<Transaction>>[]): void {
    const results = doOrRefuse(requests.map(({ order }) => order))
    const failure = results.find((result): result is Failure => 'failed' in result)
    if (failure) tell(failure)
    else if (hasFailed) tell('recovered')
    hasFailed = failure !== undefined
    for (const [index, request] of requests.entries()) post(request, results[index] as Result)
    if (failure?.broken) letGo()
  }

  function doOrRefuse(requests: Request<Transaction>[]): Result[] {
    const failure = open ? undefined : reopen()
    return failure || !open ? requests.map(() => failure as Failure) : open.transactions.do(requests)
  }

  /** Returns why that cannot be done now. */
  function reopen(): Failure | undefined {
    const lost = files.findFault()
    if (lost !== undefined) return { outcome: 'nothing-added', failed: lost, code: 0, lost: true }
    try {
      use(openDatabase({ ...options, mustExist: true }, files.known).db)
      tell('reopened')
      return undefined
    } catch (error) {
      return { outcome: 'nothing-added', failed: describe(error), code: 0 }
    }
  }

  function letGo(): void {
    if (open && files.findFault() !== undefined) emptyLog(open.db)
    open?.db.close()
    open = undefined
  }

  function end(): void {
    letGo()
    process.exit()
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

function describe(error: unknown): string {
  const { message } = error as Error
  return error instanceof StoreRefused ? message : `cannot open ${options.path}: ${message}`
}

function tell(message: FromWriter): void {
  main.postMessage(message)
}

function post({ order: { number }, port }: Waiting<Request>, result: Result): void {
  port.postMessage({ number, ...result } satisfies Answer)
}

/** The batches that are first in line. */
function takeBatches(orders: Waiting[]): Waiting<Request<Transaction>>[] {
  const end = orders.findIndex(({ order }) => order === 'close' || !('append' in order))
  return orders.splice(0, end < 0 ? orders.length : end) as Waiting<Request<Transaction>>[]
}
