// Reads whole answers, however long, and keeps nothing of them.
import { connect } from 'node:net'
import type { Job, Result } from './job.ts'

/** Where the head of an answer surely ends. */
const headBytes = 2048

type Pull = Extract<Job, { kind: 'pull' }>

/** Pulls `times` answers per connection, or for `ms` one after the other. `p50Ms` is the median time of a whole answer. */
export async function pull(job: Pull): Promise<Result> {
  const start = performance.now()
  const deadline = job.ms === undefined ? undefined : start + job.ms
  const times: number[] = []
  async function client(): Promise<void> {
    let left = job.times ?? 1
    do {
      const ms = await pullOnce(job, deadline)
      if (ms !== undefined) times.push(ms)
    } while (deadline === undefined ? --left > 0 : performance.now() < deadline)
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
    let head = ''
    let last = ''
    const socket = connect({
      host: hostname,
      port: Number(port),
      onread: {
        buffer: Buffer.allocUnsafe(256 * 1024),
        callback(count, shared) {
          const bytes = Buffer.from(shared.buffer, shared.byteOffset, count)
          if (head.length < headBytes) head += bytes.toString('latin1', 0, headBytes)
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
      if (isWhole(head, last)) resolve(performance.now() - start)
      else if (deadline !== undefined && performance.now() > deadline) resolve(undefined)
      else
        reject(
          new Error(
            `${url}${request.path} answered ${head.slice(0, 12)}, ending with ${JSON.stringify(last)}`,
          ),
        )
    })
  })
}

/** A list ends with its bracket and, sent in chunks, with the empty chunk; of a coded one the chunk must do. */
function isWhole(head: string, last: string): boolean {
  const end = /\r\ncontent-encoding:/i.test(head) ? /\r\n0\r\n\r\n$/ : /\](\r\n0\r\n\r\n)?$/
  return head.startsWith('HTTP/1.1 200') && end.test(last)
}
