// A thread that checks: it has a view of its own on the store, and does one piece of work after the other.
import { parentPort, workerData } from 'node:worker_threads'
import { openView } from '../../store/open.ts'
import { type Done, doJob, type Job } from './jobs.ts'

export type Order = { number: number; job: Job }
export type Answer = { number: number; done: Done }

const port = parentPort as NonNullable<typeof parentPort>
const view = await openView(workerData.url)
let turn: Promise<void> = Promise.resolve()

port.on('message', (order: Order | 'close') => {
  turn = turn.then(() => (order === 'close' ? close() : answer(order)))
})

async function answer({ number, job }: Order): Promise<void> {
  port.postMessage({ number, done: await doJob(view, job) } satisfies Answer)
}

async function close(): Promise<void> {
  await view.close()
  port.close()
}
