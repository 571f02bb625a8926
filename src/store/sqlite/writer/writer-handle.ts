// The writer thread as the HTTP threads see it. The main thread starts it and logs its failures; an uncaught error of it
// ends the process, like one of the main thread.
import { once } from 'node:events'
import { extname, join } from 'node:path'
import { MessageChannel, type MessagePort, receiveMessageOnPort, Worker } from 'node:worker_threads'
import { fileCheckMs } from '../../../limits.ts'
import { Outage } from '../../../logging/outage.ts'
import { monotonicMs } from '../../../runtime/clock.ts'
import { withTimeout } from '../../../runtime/with-timeout.ts'
import type { StoreOptions } from '../../engine.ts'
import { StoreRefused, StoreUnavailable } from '../../errors.ts'
import type { OpenOptions } from '../database.ts'
import { noteFiles, type OpenFiles } from '../files/files.ts'
import type { Answer, Done, Order, Request, Started, Work, WriterEvent } from './writer-messages.ts'

/** TypeScript or compiled, like this file. */
const threadFile = join(import.meta.dirname, `writer-worker${extname(import.meta.filename)}`)

const back = 'the database takes plants again'
const lostWords = {
  gone: 'no plants are taken: put the same file back, or restart the service to open what is at the path now',
  back,
}
const failedWords = { gone: 'the database failed', still: 'the database still fails', back }

/** The writer, as a thread sees it that sends it requests. */
export type Writer = {
  readonly files: OpenFiles
  readonly requests: Requests
  /** Makes a port for the requests of another thread. Its first message names the open files. */
  share?(): MessagePort
  /** In the main thread: resolves when the writer has completed its requests and closed the database. */
  close(): Promise<void>
}

/** Starts the writer, which opens and migrates the database, and watches the files. Rejects with StoreRefused. */
export async function startWriter(path: string, options: StoreOptions): Promise<Writer> {
  const { logger, mustExist = false, keepsSchema = false, reconnected = () => {} } = options
  const worker = new Worker(threadFile, {
    name: 'plants-writer',
    workerData: { path, mustExist, keepsSchema } satisfies OpenOptions,
  })
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
  const [started] = (await once(worker, 'message')) as [Started]
  if ('refused' in started) throw new StoreRefused(started.refused)
  const share = (): MessagePort => {
    const { port1, port2 } = new MessageChannel()
    port1.postMessage(started.opened)
    worker.postMessage(port1, [port1])
    return port2
  }
  const { files, requests } = joinWriter(path, share())
  const loss = new Outage(logger, lostWords)
  const failure = new Outage(logger, failedWords)
  worker.on('message', (event: WriterEvent) => {
    if (event === 'reopened') reconnected()
    else if (event === 'recovered') for (const outage of [loss, failure]) outage.reportRecovery()
    else if (event.lost) loss.reportFailure(event.failed)
    else failure.reportFailure(event.failed, { code: event.code })
  })
  const checking = setInterval(() => {
    const fault = files.findFault()
    if (fault === undefined) loss.reportRecovery()
    else loss.reportFailure(fault)
  }, fileCheckMs).unref()
  return {
    files,
    requests,
    share,
    async close() {
      clearInterval(checking)
      requests.endWriter()
      await ended
    },
  }
}

/** Joins a running writer, through a port of its `share`. */
export function joinWriter(path: string, port: MessagePort): Writer {
  const files = noteFiles(path, receiveMessageOnPort(port)?.message)
  const requests = openRequests(port)
  // The writer goes on for other threads.
  return { files, requests, close: async () => port.close() }
}

/** The requests of one thread to the writer. */
export type Requests = ReturnType<typeof openRequests>

/** Opens the requests of a port. Requests and answers are matched by their numbers. */
export function openRequests(port: MessagePort) {
  const waiting = new Map<number, PromiseWithResolvers<Done>>()
  /** Requests that timed out and are not answered yet: while there are any, the disk is stuck. */
  const overdue = new Set<number>()
  let last = 0
  let isEnding = false

  /** Takes an answer; that of a request that has timed out is ignored. */
  port.on('message', (answer: Answer) => {
    const { number } = answer
    const request = waiting.get(number)
    waiting.delete(number)
    overdue.delete(number)
    if ('done' in answer) request?.resolve(answer.done)
    // The writer has told the main thread, which has logged it.
    else request?.reject(new StoreUnavailable(answer.outcome, answer.failed, { isLogged: true }))
  })
  port.on('close', () => {
    isEnding = true
    for (const { reject } of waiting.values())
      reject(new StoreUnavailable('unknown', 'the writer thread ended'))
  })

  return {
    /** Sends a request. Rejects with StoreUnavailable, at `deadlineMs` (of `performance.now()`) at the latest. */
    async send(work: Work, deadlineMs: number): Promise<Done> {
      if (overdue.size > 0 || isEnding)
        throw new StoreUnavailable('nothing-added', 'the writer thread does not answer')
      const number = ++last
      const leftMs = Math.max(0, deadlineMs - performance.now())
      const answer = Promise.withResolvers<Done>()
      port.postMessage({ ...work, number, deadlineMs: monotonicMs() + leftMs } satisfies Request)
      waiting.set(number, answer)
      return await withTimeout(answer.promise, leftMs, () => {
        overdue.add(number)
        throw new StoreUnavailable('unknown', 'the writer thread did not answer in time')
      })
    },
    /** Accepts no more requests, and ends the writer after those that it has. */
    endWriter(): void {
      isEnding = true
      port.postMessage('close' satisfies Order)
    },
  }
}
