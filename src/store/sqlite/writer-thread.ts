// The writer thread: opens the file, then answers requests. After an I/O error it reopens the file.
import { parentPort, workerData } from 'node:worker_threads'
import { type OpenDatabase, openDatabase, type WriterOptions } from './database.ts'
import { describeFailure, Transactions } from './transactions.ts'
import type { Answer, Order, Request, Result, Started } from './writer-messages.ts'

const options = workerData as WriterOptions
const main = parentPort as NonNullable<typeof parentPort>

let database: OpenDatabase
/** Undefined from an I/O error until the next request. */
let transactions: Transactions | undefined

main.on('message', (order: Order) => {
  if (order === 'close') end()
  const wasOpen = transactions !== undefined
  const result = run(order)
  const reopened = !wasOpen && transactions !== undefined
  tell({ number: order.number, reopened, ...result })
  if (!('failed' in result) || !result.broken) return
  transactions?.close()
  transactions = undefined
})

function run(request: Request): Result {
  try {
    transactions ??= reopen()
  } catch (error) {
    return describeFailure(error, 'nothing-added')
  }
  return transactions.do(request)
}

function reopen(): Transactions {
  database.files.check()
  database = openDatabase({ ...options, create: false }, database)
  return new Transactions(database)
}

function end(): never {
  transactions?.close()
  process.exit()
}

function tell(message: Started | Answer): void {
  main.postMessage(message)
}

try {
  database = openDatabase(options)
  transactions = new Transactions(database)
  tell({ opened: database.files.ids })
} catch (error) {
  tell({ refused: (error as Error).message })
  process.exit()
}
