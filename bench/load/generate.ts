// The load generator, a process of its own: does the jobs that its parent sends, and answers each with its result.
// Load is closed-loop: every connection sends its next request when it has the answer to the last, or a while later.
import { setTimeout as sleep } from 'node:timers/promises'
import { Connection } from './connection.ts'
import { type Job, makePlant, type RequestKind, type Result } from './job.ts'

process.on('message', async ({ id, job }: { id: number; job: Job }) => {
  try {
    process.send?.({ id, result: await generate(job, () => process.send?.({ id, begun: true })) })
  } catch (error) {
    process.send?.({ id, error: (error as Error).message })
  }
})
process.on('disconnect', () => process.exit())

/** How many connections a server accepts per millisecond, at the least. */
const acceptedPerMs = 4

/** `begin` is called when all connections are open. Rejects as soon as an answer is not the expected one. */
async function generate(
  { url, request, connections, ms, times, perSecond, turns = [request] }: Job,
  begin: () => void,
): Promise<Result> {
  const makers = turns.map((kind) => makeRequests(url, kind))
  let sent = 0
  const next = () => makers[sent++ % makers.length]?.() as string
  const all = Array.from({ length: connections }, () => {
    const waitMs = perSecond === undefined ? () => 0 : makePace(perSecond)
    return new Connection({ url, status: request.status, next, waitMs })
  })
  try {
    await Promise.all(all.map(({ opened }) => opened))
    // The system opens them, and the server takes them over later.
    await sleep(connections / acceptedPerMs)
    begin()
    const start = performance.now()
    const end = start + ms
    await Promise.all(all.map((one) => one.run((now) => (times ? one.latencies.length < times : now < end))))
    const latencies = all.flatMap((one) => one.latencies)
    return summarize(latencies, performance.now() - start)
  } finally {
    for (const connection of all) connection.close()
  }
}

function makeRequests(url: string, { method, path, headers }: RequestKind): () => string {
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`)
  const head = `${method} ${path} HTTP/1.1\r\nHost: ${new URL(url).host}\r\n${lines.join('')}`
  const get = `${head}\r\n`
  if (method === 'GET') return () => get
  let n = 0
  return () => {
    const body = JSON.stringify(makePlant(n++))
    return `${head}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
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
