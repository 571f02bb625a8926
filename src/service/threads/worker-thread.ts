// An HTTP thread beside the main one, on the same port. The main thread writes its log lines.
import { parentPort, workerData } from 'node:worker_threads'
import { beatMs } from '../../limits.ts'
import { type LineSink, makeLogger } from '../../logging/open-log.ts'
import { makeMask } from '../../logging/secrets.ts'
import { listen } from '../listen.ts'
import { buildHttpWorker, openCounted } from './http-worker.ts'
import type { FromWorker, ToWorker, WorkerData } from './threads.ts'

const main = parentPort as NonNullable<typeof parentPort>
const { config, shared, store: port, isCounted } = workerData as WorkerData

const post = (...message: FromWorker) => main.postMessage(message)
const sink: LineSink = {
  /** Posts lines. Bytes are copied once, as their buffer is used again, and then transferred. */
  write(lines) {
    const log = typeof lines === 'string' ? lines : new Uint8Array(lines)
    main.postMessage(['log', log] satisfies FromWorker, typeof log === 'string' ? [] : [log.buffer])
  },
}
const logger = makeLogger(sink, config)
// Loaded only when metrics are on.
const metrics = isCounted ? new (await import('../admin/thread-metrics.ts')).ThreadMetrics() : undefined
const beat = () => Atomics.store(shared.missedBeats, shared.thread, 0)
setInterval(beat, beatMs).unref()

const store = await openCounted(config.databaseUrl, { logger, port, isFurther: true }, metrics)
const log = { logger, sink, mask: makeMask(config.accessTokens) }
const worker = await buildHttpWorker({ store, config, log, metrics, shared })
main.on('message', async (message: ToWorker) => {
  if (message === 'count' && metrics) post('counted', await metrics.getMetricsAsJSON())
  if (message !== 'close') return
  await worker.close()
  // Closing a SQLite file is synchronous, so that the main thread is the last to close it.
  const closing = store.close()
  post('closed')
  await Promise.all([closing, worker.sendSpans()])
  // Exit explicitly: a request to a collector that does not answer would keep the thread alive.
  process.exit()
})
await listen(worker.app, { host: config.host, port: config.port, reusePort: true })
post('listening')
