// A server under test: a process on a processor of its own, and what the operating system says of it.
import { on } from 'node:events'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { dirname } from 'node:path'
import type { Readable } from 'node:stream'
import type { Bench } from './bench.ts'
import { readMiB, readUsage } from './proc.ts'
import { spawnPinned, stop } from './processes.ts'

export type StartOptions = {
  name: string
  command: string[]
  env: NodeJS.ProcessEnv
  cwd?: string
  cpus: string | undefined
}

export type Server = Awaited<ReturnType<typeof startServer>>

const startMs = 30_000

/** `node` in a command is the one that runs the bench. */
const path = `${dirname(process.execPath)}:${process.env.PATH}`

/** Starts a server that prints `listening on URL`, and waits for that line. Throws when it does not come. */
export async function startServer(bench: Bench, { name, command, env, ...where }: StartOptions) {
  const logFile = bench.newFile('server.log')
  const log = openSync(logFile, 'a')
  const child = spawnPinned(command, {
    ...where,
    env: { PATH: path, PORT: '0', ...env },
    stdio: ['ignore', 'pipe', log],
  })
  closeSync(log)
  const timer = setTimeout(() => stop(child), startMs)
  const url = await readUrl(child.stdout as Readable)
  clearTimeout(timer)
  const pid = child.pid as number
  if (!url) throw new Error(`${name} did not start:\n${readFileSync(logFile, 'utf8').slice(-2000)}`)
  const server = {
    name,
    /** The file that takes its standard error. */
    logFile,
    url,
    /** How many requests it has answered to the load generator. */
    answers: 0,
    /** What all its threads together have used so far. */
    usage: () => readUsage(pid),
    /** MiB of resident memory: now, or with `VmHWM` the most since resetPeak(). NaN where /proc is not. */
    memoryMiB: (figure: 'VmRSS' | 'VmHWM' = 'VmRSS') => readMiB(pid, figure),
    /** proc_pid_clear_refs(5): 5 resets the peak. */
    resetPeak: () => process.platform === 'linux' && writeFileSync(`/proc/${pid}/clear_refs`, '5'),
    stop: () => stop(child),
  }
  bench.stopLater(server)
  return server
}

/** Undefined when the output ends before. */
async function readUrl(stream: Readable): Promise<string | undefined> {
  let output = ''
  for await (const [chunk] of on(stream, 'data', { close: ['end'] })) {
    output += chunk
    const url = /listening on (\S+)/.exec(output)?.[1]
    if (url !== undefined) return url
  }
}
