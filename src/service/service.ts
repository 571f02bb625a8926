// The service as its caller has it, on as many threads as are asked for: what listens, drains and closes as one.
import type { AddressInfo } from 'node:net'
import type { FastifyInstance } from 'fastify'
import type { Metrics } from './admin/metrics.ts'
import { listen, refuseTaken } from './listen.ts'
import { buildHttpWorker, type HttpWorkerOptions } from './threads/http-worker.ts'
import { makeShared } from './threads/shared.ts'
import { countThreads, Threads } from './threads/threads.ts'

/** `store`: open, and closed with the service, or when it cannot be built. `metrics`: show what all threads count. */
export type ServiceOptions = Omit<HttpWorkerOptions, 'metrics' | 'shared'> & { metrics?: Metrics | undefined }

export type Service = {
  /** That of the main thread. */
  readonly app: FastifyInstance
  /** True when a thread hangs. */
  readonly hasHung: boolean
  /** Resolves when all threads listen, to where they do. Rejects as `listen` does, and when the port is taken. */
  listen(): Promise<AddressInfo>
  /** From now on every answer ends its connection; the main thread's do when `isDraining` says so. */
  drain(): void
  /** Resolves when all that there was is answered, and the store closed. */
  close(): Promise<void>
}

export async function buildService({ metrics, ...options }: ServiceOptions): Promise<Service> {
  const { config, store, log } = options
  const count = countThreads(config.threads, log.logger)
  const shared = makeShared(count)
  const worker = await buildHttpWorker({ ...options, metrics: metrics?.own, shared }).catch(async (error) => {
    await store.close()
    throw error
  })
  const threads = new Threads({ store, shared, log, isCounted: metrics !== undefined })
  if (metrics) threads.show(metrics)

  return {
    app: worker.app,
    get hasHung() {
      return threads.hasHung
    },
    async listen() {
      const place = { ...config, reusePort: count > 1 }
      if (place.reusePort) await refuseTaken(place)
      await listen(worker.app, place)
      const address = worker.app.server.address() as AddressInfo
      await threads.start({ ...config, port: address.port })
      return address
    },
    drain() {
      threads.drain()
    },
    async close() {
      await Promise.all([worker.close(), threads.close()])
      await Promise.all([store.close(), threads.end(), worker.sendSpans()])
    },
  }
}
