// A second, small server for operators: liveness, readiness, metrics. It needs no token, and listens before the store
// is open.
import { once } from 'node:events'
import { createServer, type Server } from 'node:http'
import { problems } from '../../../schemas/problems.ts'
import { ProblemError } from '../../http/problem-error.ts'
import { makeDescribeProblem } from '../../http/problems.ts'
import type { Health } from './health.ts'
import type { Metrics } from './metrics.ts'

type Page = { status: number; headers: Record<string, string>; text: string }

/** There is no base path here, and no problem with a type. */
const describeProblem = makeDescribeProblem('/')
const methods = ['GET', 'HEAD']

/** Starts the admin server, which the caller closes. Rejects as `listen` does. */
export async function startAdminServer(
  health: Health,
  metrics: Metrics,
  { host, port }: { host: string; port: number | undefined },
): Promise<Server> {
  const openPage = makePages(health, metrics)
  const server = createServer(async ({ method, url }, response) => {
    const { status, headers, text } = await openPage(String(method), String(url)).catch(describe)
    response
      .writeHead(status, {
        ...headers,
        'content-length': Buffer.byteLength(text),
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      })
      .end(text)
  })
  const listening = once(server, 'listening')
  server.listen(port, host)
  await listening
  return server
}

function makePages(health: Health, metrics: Metrics): (method: string, url: string) => Promise<Page> {
  const pages: Record<string, () => Promise<Page>> = {
    '/livez': async () => {
      if (health.isLive) return jsonPage(200, { status: 'live' })
      return jsonPage(503, { status: 'hung', reason: 'thread-hangs' })
    },
    '/readyz': async () => {
      const reason = await health.findFault()
      return reason ? jsonPage(503, { status: 'unready', reason }) : jsonPage(200, { status: 'ready' })
    },
    '/metrics': async () => {
      const headers = { 'content-type': metrics.contentType }
      return { status: 200, headers, text: await metrics.write() }
    },
  }
  return async (method, url) => {
    const page = pages[url.split('?', 1)[0] as string]
    if (!page) throw new ProblemError(problems.nothingHere)
    if (methods.includes(method)) return await page()
    const headers = { allow: methods.join(', ') }
    throw new ProblemError(problems.otherMethods(methods), { headers })
  }
}

function jsonPage(status: number, body: object): Page {
  return { status, headers: { 'content-type': 'application/json' }, text: `${JSON.stringify(body)}\n` }
}

function describe(error: unknown): Page {
  const known = error instanceof ProblemError ? error : new ProblemError(problems.ours)
  const { status, problem, headers } = describeProblem(known)
  return { status, headers, text: JSON.stringify(problem) }
}
