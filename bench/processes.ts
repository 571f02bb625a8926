// Starts servers and commands, generates load in this process, and measures them through proc(5).
import { spawn, spawnSync } from 'node:child_process'
import { on, once } from 'node:events'
import { readdirSync, readFileSync } from 'node:fs'
import { availableParallelism } from 'node:os'
import { dirname } from 'node:path'
import { noteProcess } from '../test/support/processes.ts'
import { generate, type Job } from './generate.ts'

const patienceMs = 60_000
/** Starts with the directory of the `node` that runs the benchmark. */
const PATH = `${dirname(process.execPath)}:${process.env.PATH}`
const canPin = availableParallelism() > 1 && spawnSync('taskset', ['--version']).status === 0
/** The first processor handles most interrupts, so the server gets another. */
const all = `0-${availableParallelism() - 1}`
export const pins = { server: canPin ? '1' : all, load: canPin ? '0' : all }
const pin = (cpus: string) => (canPin ? ['taskset', '-c', cpus] : [])
if (canPin) spawnSync('taskset', ['-c', '-a', '-p', pins.load, String(process.pid)])

export type Server = { name: string; url: string; pid: number; stop(): Promise<void> }

/** Starts a server, and waits until it prints its URL. */
export async function startServer(name: string, command: string[], env: NodeJS.ProcessEnv): Promise<Server> {
  const [file = '', ...args] = [...pin(pins.server), ...command]
  const child = spawn(file, args, { env: { PATH, PORT: '0', ...env }, stdio: ['ignore', 'pipe', 'ignore'] })
  noteProcess(child)
  const stop = async () => {
    const ended = once(child, 'exit')
    child.kill('SIGTERM')
    await ended
  }
  let output = ''
  const signal = AbortSignal.timeout(patienceMs)
  for await (const [chunk] of on(child.stdout, 'data', { close: ['end'], signal })) {
    output += chunk
    const url = /listening on (\S+)/.exec(output)?.[1]
    if (url !== undefined) return { name, url, pid: child.pid as number, stop }
  }
  throw new Error(`${name} did not start: ${output}`)
}

/** Processor time of a process and all its threads, in microseconds. */
export function readCpuUs(pid: number): number {
  const read = (thread: string) => readFileSync(`/proc/${pid}/task/${thread}/schedstat`, 'utf8').split(' ')[0]
  return readdirSync(`/proc/${pid}/task`).reduce((sum, thread) => sum + Number(read(thread)) / 1000, 0)
}

/** Resident memory in MiB: current, or with VmHWM the peak so far. */
export function readMiB(pid: number, figure: 'VmRSS' | 'VmHWM' = 'VmRSS'): number {
  const status = readFileSync(`/proc/${pid}/status`, 'utf8')
  return Number(new RegExp(`^${figure}:\\s+(\\d+)`, 'm').exec(status)?.[1]) / 1024
}

/** Runs a command on all processors. Throws if it fails. */
export async function runCommand(command: string[], env: NodeJS.ProcessEnv = {}) {
  const [file = '', ...args] = [...pin(all), ...command]
  const [startMs, cpuMs] = [performance.now(), readReapedMs()]
  const child = spawn(file, args, { env: { PATH, ...env }, stdio: ['ignore', 'ignore', 'pipe'] })
  noteProcess(child)
  let [peakMiB, errors] = [0, '']
  child.stderr.on('data', (chunk) => (errors += chunk))
  const look = setInterval(() => (peakMiB = readMiB(child.pid as number, 'VmHWM') || peakMiB), 20)
  child.once('exit', () => clearInterval(look))
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${command.join(' ')} ended with ${code}: ${errors}`)
  return { ms: performance.now() - startMs, cpuMs: readReapedMs() - cpuMs, peakMiB }
}

/** Processor time of the children of this process that have ended, in steps of 10 ms. */
function readReapedMs(): number {
  const fields = readFileSync('/proc/self/stat', 'utf8').split(') ')[1]?.split(' ') ?? []
  return (Number(fields[13]) + Number(fields[14])) * 10
}

/** Figures of one slice. `cpuUs` and `perSecond` are per request, start or plant. */
export type Slice = { cpuUs: number; perSecond: number; p50Ms: number; p99Ms: number; mib: number }

/** Runs a job of the load generator against a server. */
export async function measure({ url, pid }: Server, job: Omit<Job, 'url'>): Promise<Slice> {
  let before = Number.NaN
  const { answers, ms, p50Ms, p99Ms } = await generate({ ...job, url }, () => (before = readCpuUs(pid)))
  const cpuUs = (readCpuUs(pid) - before) / answers
  return { cpuUs, perSecond: (answers * 1000) / ms, p50Ms, p99Ms, mib: readMiB(pid, 'VmHWM') }
}
