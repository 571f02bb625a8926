// A thread that checks: it has a view of its own on the store, and does one piece of work after the other.
import { parentPort, workerData } from 'node:worker_threads'
import { openView, type Range, type StoreView } from '../store/view.ts'
import { checkPage, type PageReport } from './pages.ts'

/** A range of plants, or the database's own check of its file. */
export type Job = Range | 'integrity'
export type Order = { number: number; job: Job }
/** `failed`: why it could not be read. */
export type Answer = { number: number } & (PageReport | { failed: string })

const port = parentPort as NonNullable<typeof parentPort>
const opened = openView(workerData.url)
let turn: Promise<void> = Promise.resolve()

port.on('message', (order: Order | 'close') => {
  turn = turn.then(() => (order === 'close' ? close() : answer(order)))
})

async function answer({ number, job }: Order): Promise<void> {
  try {
    const view = await opened
    const report = job === 'integrity' ? await checkIntegrity(view) : await checkPage(view, job)
    port.postMessage({ number, ...report } satisfies Answer)
  } catch (error) {
    port.postMessage({ number, failed: (error as Error).message } satisfies Answer)
  }
}

async function close(): Promise<void> {
  await opened.then((view) => view.close()).catch(() => {})
  port.close()
}

/** PostgreSQL has no such check. */
async function checkIntegrity(view: StoreView): Promise<PageReport> {
  const rows = view.engine === 'SQLite' ? await view.select<[string]>('PRAGMA integrity_check(10)') : []
  const faults = rows.flat().filter((text) => text !== 'ok')
  return {
    lines: Buffer.alloc(0),
    unchecked: 0,
    faults: faults.map((detail) => ({ detail: `integrity check: ${detail}` })),
  }
}
