// Every process that the bench starts, and the end of each of them.
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { setPriority } from 'node:os'
import type { Stat } from './proc.ts'

const running = new Set<ChildProcess>()
/** What works for the bench although it is no child of it: a database's server. */
const claimed = new Set<number>()

export type PinnedOptions = SpawnOptions & { cpus: string | undefined; nice?: number }

/** Starts a command, on certain processors when `cpus` names some (in taskset's words). */
export function spawnPinned(command: string[], { cpus, nice = 0, ...options }: PinnedOptions): ChildProcess {
  const [file, ...args] = cpus === undefined ? command : ['taskset', '-c', cpus, ...command]
  const child = spawn(file as string, args, options)
  running.add(child)
  child.once('exit', () => running.delete(child))
  if (nice > 0 && child.pid) setPriority(child.pid, nice)
  return child
}

/** Has a process, and all that it starts, counted as the bench's own. */
export function claim(pid: number): void {
  claimed.add(pid)
}

/** Those that are the bench's: its process group, in which strace stays, and the descendants of what it claimed. */
export function pickOurs(all: Stat[]): Stat[] {
  const group = all.find(({ pid }) => pid === process.pid)?.group
  const ours = new Map(
    all.flatMap((one) => (one.group === group || claimed.has(one.pid) ? [[one.pid, one]] : [])),
  )
  // Maps are walked in the order of their insertion, those that come meanwhile included.
  for (const [pid] of ours) for (const one of all) if (one.parent === pid) ours.set(one.pid, one)
  return [...ours.values()]
}

/** Asks a process to end, and ends it when it does not. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const ended = new Promise((resolve) => child.once('exit', resolve))
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await ended
  clearTimeout(timer)
}

/** Ends everything that still runs, at once. */
export function killAll(): void {
  for (const child of running) child.kill('SIGKILL')
}

/** Whether a program can be started here. */
export function isInstalled(program: string): boolean {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0
}
