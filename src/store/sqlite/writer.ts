// The main thread's side of the writer thread: starts it, sends it requests, and logs its failures.
import { once } from 'node:events'
import { extname, join } from 'node:path'
import { Worker } from 'node:worker_threads'
import type { Logger } from 'pino'
import { makeOutage } from '../../outage.ts'
import { StoreRefused, StoreUnavailable } from '../errors.ts'
import { storeLimitMs, withTimeout } from '../in-time.ts'
import type { WriterOptions } from './database.ts'
import { recordFiles } from './files.ts'
import { sharedMs } from './locks.ts'
import type { Answer, Done, Request, Work } from './writer-thread.ts'

/** Either TypeScript or compiled, like this file. */
const threadFile = join(import.meta.dirname, `writer-thread${extname(import.meta.filename)}`)
/** Interval between checks of the files. */
const fileCheckMs = 1000
/** Time that `endProcess` waits for the reader of the log. */
const logEndMs = 1500

export type Writer = Awaited<ReturnType<typeof startWriter>>

/** Starts the writer, which opens the database, and watches the files. Rejects with StoreRefused. */
export async function startWriter(options: WriterOptions, logger: Logger) {
  // The descriptor of the database must stay open when the thread ends: see `syncFile`. The thread does not need the
  // modules that this process preloaded.
  const worker = new Worker(threadFile, { workerData: options, trackUnmanagedFds: false, execArgv: [] })
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
  const [ids] = await once(worker, 'message').catch(({ message }) => {
    throw new StoreRefused(message)
  })
  const files = recordFiles(options.path, ids)
  const requests = openRequests((order) => worker.postMessage(order))
  const outage = makeOutage(logger, {
    failed: 'plants cannot be added to the database',
    recovered: 'plants can be added to the database again',
  })
  const checking = setInterval(() => {
    const fault = files.findFault()
    if (fault !== undefined) outage.reportFailure(fault)
  }, fileCheckMs).unref()
  /** True from the failure of a full disk until something is written: probes, which are empty, and replays write nothing. */
  let isFull = false
  worker.on('message', (answer: Answer) => {
    isFull = 'failed' in answer ? /is full/.test(answer.failed) : isFull && !/added|\d/.test(`${answer.done}`)
    if ('failed' in answer) outage.reportFailure(answer.failed)
    else if (!isFull) outage.reportRecovery()
    requests.answer(answer)
  })
  worker.once('error', (error) => {
    if (typeof error.cause !== 'string') throw error
    endProcess(logger, error.cause, `${files.path}: ${error.message}`)
  })
  worker.once('exit', requests.abort)
  return {
    files,
    send: requests.send,
    /** Refuses new requests. Resolves when pending requests are done and the database is closed. */
    async close(): Promise<void> {
      clearInterval(checking)
      requests.end()
      await ended
    },
  }
}

/** Ends the process when acknowledged plants may be lost: a repeated sync would not detect lost data. */
function endProcess(logger: Logger, message: string, reason: string): void {
  if (logger.isLevelEnabled('fatal')) logger.fatal({ reason }, message)
  else console.error(`plant-store: ${message} (${reason})`)
  logger.flush(() => process.exit(1))
  // An exit would block while the reader of the log is stuck.
  setTimeout(() => process.kill(process.pid, 'SIGKILL'), logEndMs)
  // Process 1 of a container ignores a signal that it sends to itself.
  setTimeout(() => process.exit(1), logEndMs)
}

/** The requests to the writer, which answers them in order. */
export function openRequests(post: (order: Request | 'close') => void) {
  const waiting: (PromiseWithResolvers<Done> & { deadlineMs: number })[] = []
  let isEnding = false
  return {
    /** Sends a request. Rejects with StoreUnavailable, no later than at `deadlineMs` (of `performance.now()`). */
    async send(work: Work, deadlineMs = performance.now() + storeLimitMs): Promise<Done> {
      const nowMs = performance.now()
      // While a request is overdue, the disk does not respond.
      if (isEnding || waiting.some((earlier) => earlier.deadlineMs <= nowMs))
        throw new StoreUnavailable('nothing-added', 'the writer thread is closing or not responding')
      const request = { ...Promise.withResolvers<Done>(), deadlineMs }
      const leftMs = Math.max(0, deadlineMs - nowMs)
      waiting.push(request)
      post({ ...work, deadlineMs: sharedMs() + leftMs })
      const makeError = () => new StoreUnavailable('unknown', 'the writer thread timed out, but may finish')
      return withTimeout(request.promise, leftMs, makeError)
    },
    /** Settles the first request. No effect if the request has timed out. */
    answer(answer: Answer): void {
      const request = waiting.shift()
      if ('done' in answer) request?.resolve(answer.done)
      else request?.reject(new StoreUnavailable(answer.outcome, answer.failed, { isQuiet: true }))
    },
    /** Rejects all pending and new requests, because the thread has ended. */
    abort(): void {
      isEnding = true
      for (const { reject } of waiting) reject(new StoreUnavailable('unknown', 'the writer has stopped'))
    },
    /** Refuses new requests, and ends the writer after the pending ones. */
    end(): void {
      isEnding = true
      post('close')
    },
  }
}
