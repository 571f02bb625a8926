// What the operating system says of processes (proc(5)): figures are NaN where there is no /proc.
import { spawnSync } from 'node:child_process'
import { readdirSync, readFileSync } from 'node:fs'

/** Processor time of a process so far: of each of its threads to the nanosecond, of all that it ever had in ticks. */
export type Usage = { threads: Map<string, number>; cpuUs: number }

const tickUs = 1e6 / (Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout) || 100)

export function readUsage(pid: number): Usage {
  const threads = list(`/proc/${pid}/task`).map((thread): [string, number] => {
    return [thread, Number(read(`/proc/${pid}/task/${thread}/schedstat`).split(' ')[0]) / 1000]
  })
  return { threads: new Map(threads), cpuUs: readStat(pid)?.cpuUs ?? Number.NaN }
}

/** The processor time between two looks at a process, or since its start, in microseconds. */
export function subtractUsage(after: Usage, before: Usage = { threads: new Map(), cpuUs: 0 }): number {
  if (after.threads.size === 0) return Number.NaN
  let cpuUs = 0
  for (const [thread, us] of after.threads) cpuUs += us - (before.threads.get(thread) ?? 0)
  // Threads that have ended are in the ticks alone, of which a difference may be one too large.
  return Math.max(cpuUs, after.cpuUs - before.cpuUs - (before.cpuUs > 0 ? tickUs : 0))
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
  const [, ...fields] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  const [parent, group] = [Number(fields[0]), Number(fields[1])]
  const ticks = (first: number) => (Number(fields[first]) + Number(fields[first + 1])) * tickUs
  return { pid, parent, group, cpuUs: ticks(10), reapedUs: ticks(12) }
}

/** Processor time of everyone on this machine, and what a hypervisor took from it; not that of interrupts. */
export function readMachineUs(): number {
  const [, user, nice, system, , , , , steal] = read('/proc/stat').split('\n')[0]?.split(/\s+/) ?? []
  return [user, nice, system, steal].reduce((sum, ticks) => sum + Number(ticks), 0) * tickUs
}

/** A figure in MiB from /proc/PID/status. */
export function readMiB(pid: number, name: string): number {
  const kib = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(read(`/proc/${pid}/status`))?.[1]
  return Number(kib ?? Number.NaN) / 1024
}

/** How many sockets of IPv4 listen on a port: threads that share it have one each. */
export function countListeners(port: string): number {
  const local = Number(port).toString(16).toUpperCase().padStart(4, '0')
  return read('/proc/net/tcp').match(new RegExp(`:${local} \\w+:0000 0A `, 'g'))?.length ?? 0
}

/** The text of a file; empty when it cannot be read. */
export function read(path: string): string {
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
