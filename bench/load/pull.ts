// Reads whole answers, however long, and keeps nothing of them.
import { connect } from 'node:net'
import type { Job, Result } from './job.ts'

/** Pulls one answer a connection, or for `ms` one after the other. `p50Ms` is the median time of a whole answer. */
export async function pull(job: Job & { ms?: number }): Promise<Result> {
  const start = performance.now()
  const deadline = job.ms === undefined ? undefined : start + job.ms
  const times: number[] = []
  async function client(): Promise<void> {
    do {
      const ms = await pullOnce(job, deadline)
      if (ms !== undefined) times.push(ms)
    } while (deadline !== undefined && performance.now() < deadline)
  }
  await Promise.all(Array.from({ length: job.connections }, client))
  times.sort((a, b) => a - b)
  const median = times[Math.floor(times.length / 2)] ?? 0
  return { answers: times.length, ms: performance.now() - start, p50Ms: median, p99Ms: times.at(-1) ?? 0 }
}

/** The milliseconds of one answer; undefined when it was given up at the deadline. */
function pullOnce({ url, request }: Job, deadline: number | undefined): Promise<number | undefined> {
  const { hostname, port, host } = new URL(url)
  const lines = Object.entries(request.headers).map(([name, value]) => `${name}: ${value}\r\n`)
  return new Promise((resolve, reject) => {
    const start = performance.now()
    let first = ''
    let last = ''
    const socket = connect({
      host: hostname,
      port: Number(port),
      onread: {
        buffer: Buffer.allocUnsafe(256 * 1024),
        callback(count, shared) {
          const bytes = Buffer.from(shared.buffer, shared.byteOffset, count)
          if (first === '') first = bytes.toString('latin1', 0, 12)
          last = (last + bytes.toString('latin1', Math.max(0, count - 8))).slice(-8)
          if (deadline !== undefined && performance.now() > deadline) socket.destroy()
          return true
        },
      },
    })
    socket.write(
      `GET ${request.path} HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${lines.join('')}\r\n`,
    )
    socket.on('error', reject)
    socket.on('close', () => {
      // A list ends with its bracket and, sent in chunks, with the empty chunk.
      if (first === 'HTTP/1.1 200' && /\](\r\n0\r\n\r\n)?$/.test(last)) resolve(performance.now() - start)
      else if (deadline !== undefined && performance.now() > deadline) resolve(undefined)
      else reject(new Error(`${url}${request.path} answered ${first} and ended with ${JSON.stringify(last)}`))
    })
  })
}
