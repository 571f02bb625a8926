// A second small server for the operator alone: liveness, readiness, metrics. It asks for no token.
import { createServer, type Server } from 'node:http'
import { collectDefaultMetrics, Gauge, Histogram, Registry } from 'prom-client'
import { describeProblem } from '../http/problems.ts'
import type { Access } from '../http/in-flight.ts'
import { ProblemError } from '../http/problem-error.ts'
import type { PlantLog } from '../store/store.ts'

const readyTimeoutMs = 2000

export class Metrics {
  readonly registry = new Registry()
  readonly #durations: Histogram<'method' | 'route' | 'status'>

  constructor(log: PlantLog) {
    collectDefaultMetrics({ register: this.registry })
    this.#durations = new Histogram({
      name: 'http_request_duration_seconds',
      help: 'Time from the head of a request to the end of its answer.',
      labelNames: ['method', 'route', 'status'],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10],
      registers: [this.registry],
    })
    new Gauge({
      name: 'plants_total',
      help: 'How many plants are in the log.',
      registers: [this.registry],
      async collect() {
        this.set(await log.head())
      },
    })
  }

  /** `route`: the paths of the contract by themselves, all others together, so that a scan makes no new series. */
  readonly count = ({ method, url, status, durationMs }: Access): void => {
    const route = /\/plants(\?|$)/.test(url) ? '/plants' : 'other'
    this.#durations.observe({ method, route, status: String(status) }, durationMs / 1000)
  }
}

/** Makes the admin server; the caller has it listen and closes it. `/readyz` is 503 while the store cannot be read. */
export function makeAdminServer(log: PlantLog, metrics: Metrics): Server {
  const pages: Record<string, () => Promise<{ type: string; text: string }>> = {
    '/livez': async () => plain,
    '/readyz': async () => requireReady(log),
    '/metrics': async () => ({ type: metrics.registry.contentType, text: await metrics.registry.metrics() }),
  }
  return createServer(async (request, response) => {
    const page = pages[String(request.url).split('?', 1)[0] as string]
    try {
      if (!page) throw new ProblemError('not-found', 'There is nothing at this path.')
      const { type, text } = await page()
      response.writeHead(200, { 'content-type': type, 'x-content-type-options': 'nosniff' }).end(text)
    } catch (error) {
      const known =
        error instanceof ProblemError
          ? error
          : new ProblemError('unavailable', 'The store cannot be read now.', {
              headers: { 'Retry-After': '1' },
            })
      const { status, problem, headers } = describeProblem(known)
      response
        .writeHead(status, { ...headers, 'x-content-type-options': 'nosniff' })
        .end(JSON.stringify(problem))
    }
  })
}

const plain = { type: 'text/plain; charset=utf-8', text: 'ok\n' }

async function requireReady(log: PlantLog) {
  const late = new Promise<never>((_resolve, reject) => {
    setTimeout(reject, readyTimeoutMs, new Error('the store did not answer in time')).unref()
  })
  await Promise.race([Promise.resolve(log.head()), late])
  return plain
}
