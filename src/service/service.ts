// The service on all of its threads, which listens, drains and closes as one.
import { StoreRefused } from '../store/errors.ts'
import type { Metrics } from './admin/metrics.ts'
import { listen, refuseTaken } from './listen.ts'
import { makeShared } from './shared.ts'
import { buildHttpWorker, type HttpWorkerOptions } from './threads/http-worker.ts'
import { countThreads, Threads } from './threads/threads.ts'

/**
 * `store`: open; closed with the service, or when that cannot be built. `metrics`: publish the counts of all threads.
 */
export type ServiceOptions = Omit<HttpWorkerOptions, 'metrics' | 'shared'> & { metrics?: Metrics | undefined }

export async function buildService(options: ServiceOptions) {
  const { config, store, log } = options
  const count = countThreads(config.threads, log.logger)
  if (count > 1 && !store.share) {
    await store.close()
    throw new StoreRefused(
      `THREADS ${count}: this database can be used by one thread alone: set THREADS to 1`,
    )
  }
  const shared = makeShared(count)
  const worker = await buildHttpWorker({ ...options, shared }).catch(async (error) => {
    await store.close()
    throw error
  })
  const threads = new Threads({ ...options, shared })

  return {
    threads,
    /** The app of the main thread. */
    app: worker.app,
    /** Resolves to the address when all threads listen. Rejects as `listen` does. */
    async listen() {
      const place = { ...config, reusePort: count > 1 }
      if (place.reusePort) await refuseTaken(place)
      const address = await listen(worker.app, place)
      await threads.start({ ...config, port: address.port })
      return address
    },
    /** Ends each connection with its next answer from now on. */
    drain() {
      Atomics.store(shared.draining, 0, 1)
    },
    /** Resolves when all requests are answered and the store is closed. */
    async close() {
      await Promise.all([worker.close(), threads.close()])
      await Promise.all([store.close(), threads.end(), worker.sendSpans()])
    },
  }
}
