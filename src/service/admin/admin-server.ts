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
  const server = makeAdminServer(health, metrics)
  const listening = once(server, 'listening')
  server.listen(port, host)
  await listening
  return server
}

function makeAdminServer(health: Health, metrics: Metrics): Server {
  const pages: Record<string, () => Promise<Page>> = {
    '/livez': async () =>
      health.isLive
        ? jsonPage(200, { status: 'live' })
        : jsonPage(503, { status: 'hung', reason: 'thread-hangs' }),
    '/readyz': async () => readyPage(health),
    '/metrics': async () => ({
      status: 200,
      headers: { 'content-type': metrics.contentType },
      text: await metrics.write(),
    }),
  }

  function open(method: string, url: string): Promise<Page> {
    const page = pages[url.split('?', 1)[0] as string]
    if (!page) throw new ProblemError(problems.nothingHere)
    if (methods.includes(method)) return page()
    const headers = { allow: methods.join(', ') }
    throw new ProblemError(problems.otherMethods(methods), { headers })
  }

  return createServer(async ({ method, url }, response) => {
    const { status, headers, text } = await openSafely(() => open(String(method), String(url)))
    response
      .writeHead(status, {
        ...headers,
        'content-length': Buffer.byteLength(text),
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      })
      .end(text)
  })
}

async function openSafely(open: () => Promise<Page>): Promise<Page> {
  try {
    return await open()
  } catch (error) {
    const known = error instanceof ProblemError ? error : new ProblemError(problems.ours)
    const { status, problem, headers } = describeProblem(known)
    return { status, headers, text: JSON.stringify(problem) }
  }
}

async function readyPage(health: Health): Promise<Page> {
  const reason = await health.findFault()
  return reason === undefined
    ? jsonPage(200, { status: 'ready' })
    : jsonPage(503, { status: 'unready', reason })
}

function jsonPage(status: number, body: object): Page {
  return { status, headers: { 'content-type': 'application/json' }, text: `${JSON.stringify(body)}\n` }
}
