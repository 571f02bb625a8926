// The writer thread: opens the file, then answers requests. Batches that wait at one moment, from any threads, are
// committed together. After an I/O error it reopens the file.
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

/** An order, and the port for its answer. */
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
      // Deferred, to gather messages of all ports in one turn of the event loop.
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

  /** Reopens the file; returns the failure if that is not possible now. */
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
 * Checkpoints the write-ahead log. When the file was moved, SQLite leaves its log at the old path, where it would be
 * taken for the log of the next file there.
 */
function emptyLog(db: DatabaseSync): void {
  try {
    db.exec('PRAGMA wal_checkpoint(TRUNCATE)')
    /* c8 ignore next 3: the disk fails as well */
  } catch {
    // The loss itself is logged already.
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

/** Takes the batches at the beginning of the queue. */
function takeBatches(orders: Waiting[]): Waiting<Request<Transaction>>[] {
  const end = orders.findIndex(({ order }) => order === 'close' || !('append' in order))
  return orders.splice(0, end < 0 ? orders.length : end) as Waiting<Request<Transaction>>[]
}
