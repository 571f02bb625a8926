// A thread that serves requests beside the main one, on the same port. Its log lines are written by the main thread.
import { parentPort, workerData } from 'node:worker_threads'
import { type LineSink, makeLogger } from '../../logging/open-log.ts'
import { makeMask } from '../../logging/secrets.ts'
import { listen } from '../listen.ts'
import { beat } from './heartbeats.ts'
import { buildHttpWorker, openCounted } from './http-worker.ts'
import type { FromWorker, ToWorker, WorkerData } from './worker-messages.ts'

const main = parentPort as NonNullable<typeof parentPort>
const { config, shared, store: port, isCounted } = workerData as WorkerData

const post = (message: FromWorker) => main.postMessage(message)
const sink: LineSink = { write: hand }
const logger = makeLogger(sink, config)
// As in the main thread, it is loaded where somebody can ask for it.
const metrics = isCounted ? new (await import('../admin/thread-metrics.ts')).ThreadMetrics() : undefined
let isDraining = false
beat(shared.beats, shared.thread)

try {
  const store = await openCounted(config.databaseUrl, { logger, port }, metrics)
  const log = { logger, sink, mask: makeMask(config.accessTokens) }
  const worker = await buildHttpWorker({ store, config, log, metrics, shared, isDraining: () => isDraining })
  main.on('message', async (message: ToWorker) => {
    if (message === 'count' && metrics) post({ counted: await metrics.takeSnapshot() })
    else if (message === 'drain') isDraining = true
    else if (message === 'close') {
      await worker.close()
      // A SQLite file is let go of in this very call, so that the main thread is the last to do so.
      const closing = store.close()
      post('closed')
      await Promise.all([closing, worker.sendSpans()])
      // A collector that does not answer would keep it.
      process.exit()
    }
  })
  const { host, port: chosen } = config
  await listen(worker.app, { host, port: chosen, reusePort: true })
  post('listening')
} catch (error) {
  post({ failed: (error as Error).message })
  // Whatever is open already would keep it.
  process.exit()
}

/** Bytes are a part of a buffer that is used again: a copy of them goes, and is not copied once more on the way. */
function hand(lines: Uint8Array | string): void {
  const log = typeof lines === 'string' ? lines : new Uint8Array(lines)
  main.postMessage({ log } satisfies FromWorker, typeof log === 'string' ? [] : [log.buffer])
}
