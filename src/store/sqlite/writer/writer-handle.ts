// The main thread's side of the writer thread, whose failures it logs. An uncaught error of that thread ends the
// process, like one of the main thread.
import { once } from 'node:events'
import { extname, join } from 'node:path'
import { MessageChannel, type MessagePort, Worker } from 'node:worker_threads'
import { fileCheckMs } from '../../../limits.ts'
import { Outage } from '../../../logging/outage.ts'
import { type StoreOptions, StoreRefused } from '../../store.ts'
import { type FileIds, OpenFiles } from '../files/files.ts'
import { PendingRequests } from './pending-requests.ts'
import type { Order, Started, ThreadOptions, WriterEvent } from './writer-messages.ts'

/** TypeScript or compiled, like this file. */
const threadFile = join(import.meta.dirname, `writer-worker${extname(import.meta.filename)}`)

const back = 'the database takes plants again'
const lostWords = {
  gone: 'no plants are taken: put the same file back, or restart the service to open what is at the path now',
  back,
}
const failedWords = { gone: 'the database failed', still: 'the database still fails', back }

export type WriterHandle = {
  readonly files: OpenFiles
  /** Requests of the main thread. */
  readonly requests: PendingRequests
  /** Makes a port for the requests of another thread. Its first message names the open files. */
  share(): MessagePort
  /** Resolves when the thread has completed its requests and closed the database. */
  close(): Promise<void>
}

/** Starts the writer, which opens and migrates the database, and watches the files. Rejects with StoreRefused. */
export async function startWriter(
  options: ThreadOptions,
  { logger, reconnected = () => {} }: StoreOptions,
): Promise<WriterHandle> {
  const worker = new Worker(threadFile, { workerData: options })
  const ended = new Promise<void>((resolve) => worker.once('exit', () => resolve()))
  const [started] = (await once(worker, 'message')) as [Started]
  if ('refused' in started) throw new StoreRefused(started.refused)
  const files = new OpenFiles(options.path, started.opened)
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

  const openPort = (known?: FileIds): MessagePort => {
    const { port1, port2 } = new MessageChannel()
    if (known) port1.postMessage(known)
    worker.postMessage({ port: port1 } satisfies Order, [port1])
    return port2
  }
  const requests = new PendingRequests(openPort())
  return {
    files,
    requests,
    share: () => openPort(files.known),
    async close() {
      clearInterval(checking)
      requests.endWriter()
      await ended
    },
  }
}
