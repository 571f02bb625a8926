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
  const pages: Record<string, () => Promise<Page>> = {
    '/livez': async () => healthPage('live', 'hung', health.isLive ? undefined : 'thread-hangs'),
    '/readyz': async () => healthPage('ready', 'unready', await health.findFault()),
    '/metrics': async () => makePage(200, metrics.contentType, await metrics.write()),
  }
  async function openPage(method: string, url: string): Promise<Page> {
    const page = pages[url.split('?', 1)[0] as string]
    if (!page) throw new ProblemError(problems.nothingHere)
    if (methods.includes(method)) return await page()
    const headers = { allow: methods.join(', ') }
    throw new ProblemError(problems.otherMethods(methods), { headers })
  }
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
  await once(server.listen(port, host), 'listening')
  return server
}

/** A page that says how a probe went, and why it failed, if it did. */
function healthPage(good: string, bad: string, fault: string | undefined): Page {
  const body = fault ? { status: bad, reason: fault } : { status: good }
  return makePage(fault ? 503 : 200, 'application/json', `${JSON.stringify(body)}\n`)
}

function makePage(status: number, type: string, text: string): Page {
  return { status, headers: { 'content-type': type }, text }
}

function describe(error: unknown): Page {
  const known = error instanceof ProblemError ? error : new ProblemError(problems.ours)
  const { status, problem, headers } = describeProblem(known)
  return { status, headers, text: JSON.stringify(problem) }
}
