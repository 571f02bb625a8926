// What the operating system says of processes (proc(5)): figures are NaN where there is no /proc.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** Processor time, and how often a thread gave its processor up to wait for something. */
export type Used = { cpuUs: number; sleeps: number }

/** What a process has used so far: each of its threads to the nanosecond, all that it ever had in whole ticks. */
export type Usage = { threads: Map<string, Used>; cpuUs: number }

const tickUs =
  1e6 / (Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout?.trim() || 100) || 100)

export function readUsage(pid: number): Usage {
  const threads = list(`/proc/${pid}/task`).map((thread): [string, Used] => {
    const at = `/proc/${pid}/task/${thread}`
    const cpuUs = Number(read(`${at}/schedstat`).split(' ')[0]) / 1000
    const sleeps = Number(/^voluntary_ctxt_switches:\s+(\d+)/m.exec(read(`${at}/status`))?.[1] ?? 0)
    return [thread, { cpuUs, sleeps }]
  })
  return { threads: new Map(threads), cpuUs: readStat(pid)?.cpuUs ?? Number.NaN }
}

/** What a process used between two looks at it, or since its start. */
export function subtractUsage(after: Usage, before: Usage = { threads: new Map(), cpuUs: 0 }): Used {
  if (after.threads.size === 0) return { cpuUs: Number.NaN, sleeps: Number.NaN }
  let [cpuUs, sleeps] = [0, 0]
  for (const [thread, used] of after.threads) {
    const earlier = before.threads.get(thread)
    cpuUs += used.cpuUs - (earlier?.cpuUs ?? 0)
    sleeps += used.sleeps - (earlier?.sleeps ?? 0)
  }
  // Threads that have ended are in the ticks alone, of which a difference may be one too large.
  const ticksUs = after.cpuUs - before.cpuUs - (before.cpuUs > 0 ? tickUs : 0)
  return { cpuUs: Math.max(cpuUs, ticksUs), sleeps }
}

/** A process as it stands in a list; `reapedUs` is the processor time of its children that have ended. */
export type Stat = { pid: number; parent: number; group: number; cpuUs: number; reapedUs: number }

export function listProcesses(): Stat[] {
  return list('/proc').flatMap((name) => (/^\d+$/.test(name) ? (readStat(Number(name)) ?? []) : []))
}

function readStat(pid: number): Stat | undefined {
  const stat = read(`/proc/${pid}/stat`)
  if (!stat) return undefined
  // Fields are counted from the third on, behind the name in parentheses, which may hold anything.
  const fields = stat
    .slice(stat.lastIndexOf(')') + 2)
    .split(' ')
    .map(Number)
  const [, parent = 0, group = 0] = fields
  const ticks = (first: number) => ((fields[first] ?? 0) + (fields[first + 1] ?? 0)) * tickUs
  return { pid, parent, group, cpuUs: ticks(11), reapedUs: ticks(13) }
}

/** Processor time of everyone on this machine, and what a hypervisor took from it; not that of interrupts. */
export function readMachineUs(): number {
  const [, user, nice, system, , , , , steal] = read('/proc/stat').split('\n')[0]?.split(/\s+/) ?? []
  return [user, nice, system, steal].reduce((sum, ticks) => sum + Number(ticks), 0) * tickUs
}

/** A figure in MiB from /proc/PID/status; undefined when it is not there. */
export function readMiB(pid: number, name: string): number | undefined {
  const kib = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(read(`/proc/${pid}/status`))?.[1]
  return kib === undefined ? undefined : Number(kib) / 1024
}

/** How many sockets of IPv4 listen on a port: threads that share it have one each. */
export function countListeners(port: number): number {
  const local = `:${port.toString(16).toUpperCase().padStart(4, '0')}`
  const rows = read('/proc/net/tcp').split('\n').slice(1)
  return rows
    .map((row) => row.trim().split(/\s+/))
    .filter(([, at, , state]) => at?.endsWith(local) && state === '0A').length
}

function read(path: string): string {
  try {
    return readFileSync(path, 'utf8')
  } catch {
    return ''
  }
}

function list(path: string): string[] {
  try {
    return readdirSync(path)
  } catch {
    return []
  }
}
