// A thread that serves requests beside the main one, on the same port. Its log lines are written by the main thread.
import { parentPort, workerData } from 'node:worker_threads'
import { listen } from '../http/listen.ts'
import { makeLogger } from '../log/open-log.ts'
import type { FromPart, PartData, ToPart } from './messages.ts'
import { buildPart, openCounted } from './part.ts'

const main = parentPort as NonNullable<typeof parentPort>
const { config, shared, store: port, isCounted } = workerData as PartData

const post = (message: FromPart) => main.postMessage(message)
const sink = { write: (log: string) => post({ log }) }
const logger = makeLogger(sink, config)
// As in the main thread, it is loaded where somebody can ask for it.
const metrics = isCounted ? new (await import('../admin/thread-metrics.ts')).ThreadMetrics() : undefined
let isDraining = false

try {
  const store = await openCounted(config.databaseUrl, { logger, port }, metrics)
  const log = { logger, sink }
  const part = await buildPart({ store, config, log, metrics, shared, isDraining: () => isDraining })
  main.on('message', async (message: ToPart) => {
    if (message === 'count' && metrics) post({ counted: await metrics.takeSnapshot() })
    else if (message === 'drain') isDraining = true
    else if (message === 'close') {
      await part.close()
      post('closed')
      await store.close()
      main.close()
    }
  })
  const { host, port: chosen } = config
  await listen(part.app, { host, port: chosen, reusePort: true })
  post('listening')
} catch (error) {
  post({ failed: (error as Error).message })
  // Whatever is open already would keep it.
  process.exit()
}
