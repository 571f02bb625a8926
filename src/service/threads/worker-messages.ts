// Messages between the main thread and the other HTTP threads.
import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../../config/load-config.ts'
import type { Snapshot } from '../admin/thread-metrics.ts'
import type { Shared } from './shared.ts'

/** `config`: with the main thread's port; `store`: the port at which the store is shared, if it is. */
export type WorkerData = {
  config: Config
  shared: Shared
  store: MessagePort | undefined
  isCounted: boolean
}

/** `drain`: end each connection with its next answer; `close`: accept no more requests; `count`: send the counts. */
export type ToWorker = 'drain' | 'close' | 'count'

/** `closed`: all requests are answered; `failed`: the thread cannot start. */
export type FromWorker =
  | 'listening'
  | 'closed'
  | { log: Uint8Array<ArrayBuffer> | string }
  | { counted: Snapshot }
  | { failed: string }
