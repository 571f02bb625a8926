// Closed-loop load: every connection sends its next request when it has the answer to the last, or a while later.
import { Connection } from './connection.ts'
import type { Job, Mix, RequestKind, Result } from './job.ts'
import { makePlant } from './plants.ts'

type Requests = Extract<Job, { kind: 'requests' }>

/** Runs for `ms`; rejects as soon as an answer is not the expected one. */
export async function generate({ url, request, connections, ms, ...how }: Requests): Promise<Result> {
  const latencies: number[] = []
  const next = how.mix ? mixRequests(url, request, how.mix) : makeRequests(url, request)
  const pace = () => (how.perSecond === undefined ? {} : { waitMs: makePace(how.perSecond) })
  const target = { url, status: request.status, next }
  const all = Array.from({ length: connections }, () => new Connection({ ...target, ...pace() }, latencies))
  try {
    await Promise.all(all.map((connection) => connection.opened()))
    const start = performance.now()
    await Promise.all(all.map((connection) => connection.run(start + ms)))
    return summarize(latencies, performance.now() - start)
  } finally {
    for (const connection of all) connection.close()
  }
}

function makeRequests(url: string, { method, path, headers }: RequestKind): () => string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `${method} ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\n${lines.join('')}`
  if (method === 'GET') {
    const text = `${head}\r\n`
    return () => text
  }
  let n = Math.floor(Math.random() * 1e9)
  return () => {
    const body = JSON.stringify(makePlant(n++))
    return `${head}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  }
}

function mixRequests(url: string, request: RequestKind, { paths, other, every }: Mix): () => string {
  const gets = paths.map((path) => makeRequests(url, { ...request, path }))
  const makeOther = makeRequests(url, other)
  let [n, got] = [0, 0]
  return () => {
    const make = ++n % every === 0 ? makeOther : gets[got++ % gets.length]
    return (make as () => string)()
  }
}

/** Says how long to wait until the next request: each comes somewhere in a slot of its own, like a client's would. */
function makePace(perSecond: number): () => number {
  const slotMs = 1000 / perSecond
  let slot = performance.now()
  return () => {
    const at = slot + Math.random() * slotMs
    slot = Math.max(slot + slotMs, performance.now() - slotMs)
    return Math.max(0, at - performance.now())
  }
}

function summarize(latencies: number[], ms: number): Result {
  const sorted = Float64Array.from(latencies).sort()
  const quantile = (q: number) => sorted[Math.min(sorted.length - 1, Math.floor(q * sorted.length))] ?? 0
  return { answers: sorted.length, ms, p50Ms: quantile(0.5), p99Ms: quantile(0.99) }
}
