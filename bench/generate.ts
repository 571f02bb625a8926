// The load generator: each connection sends its next request when it has received the response to the previous one.
import { readFileSync } from 'node:fs'
import { Connection } from './connection.ts'

/** `paths`: requested in turn. Each POST carries a new plant. `status`: the expected status; any other is an error. */
export type Job = {
  url: string
  method: 'GET' | 'POST'
  paths: string[]
  headers: Record<string, string>
  status: number
  connections: number
  ms: number
}

/** `begun`: called when all connections are open. Rejects at the first unexpected response. */
export async function generate(job: Job, begun: () => void) {
  const next = makeRequests(job)
  const all = Array.from({ length: job.connections }, () => new Connection({ ...job, next }))
  await Promise.all(all.map(({ opened }) => opened))
  begun()
  const startMs = performance.now()
  await Promise.all(all.map((one) => one.run((now) => now < startMs + job.ms)))
  const ms = performance.now() - startMs
  for (const connection of all) connection.close()
  const latencies = Float64Array.from(all.flatMap((one) => one.latencies)).sort()
  const quantile = (q: number) => latencies[Math.floor(q * (latencies.length - 1))] ?? 0
  return { answers: latencies.length, ms, p50Ms: quantile(0.5), p99Ms: quantile(0.99) }
}

function makeRequests({ url, method, paths, headers }: Job): () => string {
  const lines = Object.entries({ Host: new URL(url).host, ...headers }).map(
    (line) => `${line.join(': ')}\r\n`,
  )
  const heads = paths.map((path) => `${method} ${path} HTTP/1.1\r\n${lines.join('')}`)
  let sent = 0
  return () => {
    const head = heads[sent++ % heads.length]
    if (method === 'GET') return `${head}\r\n`
    const body = JSON.stringify(makePlant(sent))
    return `${head}Content-Type: application/json\r\nContent-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`
  }
}

const real: { name: string; tag: string }[] = JSON.parse(
  readFileSync(new URL('../test/fixtures/plants.json', import.meta.url), 'utf8'),
)

/** A real name, made unique by a number. */
export function makePlant(n: number): { name: string; tag: string } {
  const { name, tag } = real[n % real.length] as (typeof real)[0]
  return { name: `${name} ${n}`, tag }
}
