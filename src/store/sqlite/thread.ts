// The writer thread: says how the opening went, then answers each request with one message.
import { parentPort, workerData } from 'node:worker_threads'
import { StoreRefused } from '../store.ts'
import { type OpenDatabase, openDatabase } from './database.ts'
import type { Answer, Opened, Order, ThreadOptions } from './messages.ts'
import { Transactions } from './transactions.ts'
import { WalIndex } from './wal-index.ts'

const options = workerData as ThreadOptions
const port = parentPort as NonNullable<typeof parentPort>

const opened = open()
if (opened) serve(opened)
else port.close()

function open(): OpenDatabase | undefined {
  try {
    const opened = openDatabase(options)
    port.postMessage({ opened: opened.ids } satisfies Opened)
    return opened
  } catch (error) {
    const { message } = error as Error
    const refused = error instanceof StoreRefused ? message : `cannot open ${options.path}: ${message}`
    port.postMessage({ refused } satisfies Opened)
    return undefined
  }
}

function serve(opened: OpenDatabase): void {
  let transactions: Transactions | undefined
  port.on('message', (order: Order) => {
    if (order === 'close') end()
    else if ('index' in order)
      transactions = new Transactions(options.path, opened, new WalIndex(order.index))
    else if (transactions) {
      const result = transactions.do(order)
      port.postMessage({ number: order.number, ...result } satisfies Answer)
      if ('broken' in result && result.broken) end()
    }
  })

  function end(): void {
    transactions?.end()
    opened.db.close()
    port.close()
  }
}
