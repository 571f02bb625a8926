// A second small server for the operator alone: liveness, readiness, metrics. It asks for no token.
import { createServer, type Server } from 'node:http'
import { ProblemError } from '../http/problem-error.ts'
import { makeDescribeProblem } from '../http/problems.ts'
import type { Store } from '../store/store.ts'
import type { Metrics } from './metrics.ts'

const readyTimeoutMs = 2000

/** This server has no base path; none of its problems has a type. */
const describeProblem = makeDescribeProblem('/')

/** Makes the admin server; the caller has it listen and closes it. `/readyz` is 503 while the store cannot be written. */
export function makeAdminServer(store: Store, metrics: Metrics): Server {
  const pages: Record<string, () => Promise<{ type: string; text: string }>> = {
    '/livez': async () => plain,
    '/readyz': async () => requireReady(store),
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
          : new ProblemError('unavailable', 'The store cannot be used now.')
      const { status, problem, headers } = describeProblem(known)
      response
        .writeHead(status, { ...headers, 'x-content-type-options': 'nosniff' })
        .end(JSON.stringify(problem))
    }
  })
}

const plain = { type: 'text/plain; charset=utf-8', text: 'ok\n' }

async function requireReady(store: Store) {
  const late = new Promise<never>((_resolve, reject) => {
    setTimeout(reject, readyTimeoutMs, new Error('the store did not answer in time')).unref()
  })
  await Promise.race([store.ready(), late])
  return plain
}
