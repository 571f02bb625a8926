// Messages between the main thread and another one that serves requests.
import type { MessagePort } from 'node:worker_threads'
import type { Config } from '../../config/load-config.ts'
import type { Snapshot } from '../admin/thread-metrics.ts'
import type { Shared } from './shared.ts'

/** `config`: with the port that the main thread listens on. `store`: where the store is shared, if it is. */
export type WorkerData = {
  config: Config
  shared: Shared
  store: MessagePort | undefined
  isCounted: boolean
}

/** `drain`: every answer ends its connection from now on; `close`: no more requests; `count`: what was counted, please. */
export type ToWorker = 'drain' | 'close' | 'count'

/** `closed`: all that there was is answered; `failed`: it cannot start. */
export type FromWorker =
  | 'listening'
  | 'closed'
  | { log: Uint8Array<ArrayBuffer> | string }
  | { counted: Snapshot }
  | { failed: string }
