// The connections of one thread to a SQLite file: its own reader, and a port to the process's one writer. They stay
// open whatever happens to the path: the open file may be the last copy.

import type { MessagePort } from 'node:worker_threads'
import { fileCheckMs, storeCloseMs, storeLimitMs } from '../../limits.ts'
import { Outage } from '../../logging/outage.ts'
import { withTimeout } from '../../runtime/with-timeout.ts'
import type { StoreOptions } from '../store.ts'
import { type FileIds, OpenFiles } from './files/files.ts'
import { openReader, type Reader } from './reader.ts'
import { PendingRequests } from './writer/pending-requests.ts'
import { WriterHandle } from './writer/writer-handle.ts'

/** `close` waits for open requests, but not for a disk that does not answer. */
export type Connections = {
  readonly reader: Reader
  readonly writer: PendingRequests
  close(): Promise<void>
}

const back = 'the database takes plants again'
const lostWords = {
  gone: 'no plants are taken: put the same file back, or restart the service to open what is at the path now',
  back,
}
const failedWords = { gone: 'the database failed', still: 'the database still fails', back }

/**
 * Opens the connections of the main thread, which starts the writer and watches the files. `share` makes a port for
 * another thread. Rejects with StoreRefused.
 */
export async function connect(
  path: string,
  { logger, reconnected = () => {}, mustExist = false, keepsSchema = false }: StoreOptions,
): Promise<Connections & { share(): MessagePort }> {
  const loss = new Outage(logger, lostWords)
  const failure = new Outage(logger, failedWords)
  const handle = new WriterHandle(
    { path, mustExist, keepsSchema },
    {
      failed({ failed, code, lost }) {
        if (lost) loss.reportFailure(failed)
        else failure.reportFailure(failed, { code })
      },
      recovered() {
        loss.reportRecovery()
        failure.reportRecovery()
      },
      reopened: reconnected,
    },
  )
  const files = new OpenFiles(path, await handle.opened)
  const reader = await openOwnReader(path, files, handle)
  const checking = setInterval(() => {
    const fault = files.findFault()
    if (fault === undefined) loss.reportRecovery()
    else loss.reportFailure(fault)
  }, fileCheckMs).unref()
  return {
    reader,
    writer: handle.requests,
    share: () => handle.openPort(),
    async close() {
      clearInterval(checking)
      // Close the readers first: when the writer closes last, SQLite checkpoints the write-ahead log.
      reader.close()
      await withTimeout(handle.close(), storeCloseMs, () => {})
    },
  }
}

async function openOwnReader(path: string, files: OpenFiles, handle: WriterHandle): Promise<Reader> {
  try {
    return openReader(path, files)
    /* c8 ignore next 4: the path is given to another file in the same moment */
  } catch (error) {
    await handle.close()
    throw error
  }
}

/** Opens the connections of another thread; `port` is from the main thread's `share`. Rejects with StoreUnavailable. */
export async function connectTo(port: MessagePort, path: string): Promise<Connections> {
  const writer = new PendingRequests(port)
  const known = await writer.send({ files: true }, performance.now() + storeLimitMs)
  const reader = openReader(path, new OpenFiles(path, known as FileIds))
  return {
    reader,
    writer,
    async close() {
      reader.close()
      writer.close()
    },
  }
}
