// The writer thread: opens the file, then answers requests. After an I/O error it reopens the file.
import { parentPort, workerData } from 'node:worker_threads'
import { type OpenDatabase, openDatabase, type WriterOptions } from './database.ts'
import { closeDatabase, describeFailure, makeTransactions } from './transactions.ts'
import type { Answer, Order, Request, Result, Started } from './writer-messages.ts'

const options = workerData as WriterOptions
const tell = (message: Started | Answer) => parentPort?.postMessage(message)

let database: OpenDatabase
/** Undefined from an I/O error until the next request. */
let transact: ((request: Request) => Result) | undefined

parentPort?.on('message', (order: Order) => {
  if (order === 'close') end()
  const wasOpen = transact !== undefined
  const result = run(order)
  tell({ number: order.number, reopened: !wasOpen && transact !== undefined, ...result })
  if (!('failed' in result) || !result.broken) return
  closeDatabase(database)
  transact = undefined
})

function run(request: Request): Result {
  try {
    transact ??= reopen()
  } catch (error) {
    return describeFailure(error, 'nothing-added')
  }
  return transact(request)
}

function reopen() {
  database.files.check()
  database = openDatabase({ ...options, create: false }, database)
  return makeTransactions(database)
}

function end(): never {
  if (transact) closeDatabase(database)
  process.exit()
}

try {
  database = openDatabase(options)
  transact = makeTransactions(database)
  tell({ opened: database.files.ids })
} catch (error) {
  tell({ refused: (error as Error).message })
  process.exit()
}
