// Every process that the bench starts, under which conditions, and the end of each of them.
import { type ChildProcess, type SpawnOptions, spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { setPriority } from 'node:os'
import { listProcesses, readMachineUs, type Stat } from './proc.ts'

const running = new Set<ChildProcess>()
/** Processes that count as the bench's own, with all that they start, although they are no children of it. */
export const claimed = new Set<number>()

type PinnedOptions = SpawnOptions & { cpus: string | undefined; nice?: number }

/** Starts a command, on certain processors when `cpus` names some (in taskset's words). */
export function spawnPinned(command: string[], { cpus, nice = 0, ...options }: PinnedOptions): ChildProcess {
  const [file, ...args] = cpus === undefined ? command : ['taskset', '-c', cpus, ...command]
  const child = spawn(file as string, args, options)
  running.add(child)
  child.once('exit', () => running.delete(child))
  if (nice > 0 && child.pid) setPriority(child.pid, nice)
  return child
}

/** Processor time of everyone but the bench so far: only differences tell something. */
export function readOthersUs(): number {
  const ours = pickOurs(listProcesses())
  return readMachineUs() - ours.reduce((us, { cpuUs, reapedUs }) => us + cpuUs + reapedUs, 0)
}

/** Those that are the bench's: its process group, in which strace stays, and the descendants of what it claimed. */
function pickOurs(all: Stat[]): Stat[] {
  const group = all.find(({ pid }) => pid === process.pid)?.group
  const ours = new Set(all.filter((one) => one.group === group || claimed.has(one.pid)))
  // Sets are walked in the order of insertion, including what is added meanwhile.
  for (const { pid } of ours) for (const one of all) if (one.parent === pid) ours.add(one)
  return [...ours]
}

/** Asks a process to end, and ends it when it does not. */
export async function stop(child: ChildProcess): Promise<void> {
  if (!running.has(child)) return
  child.kill('SIGTERM')
  const timer = setTimeout(() => child.kill('SIGKILL'), 10_000)
  await once(child, 'exit')
  clearTimeout(timer)
}

/** Ends everything that still runs, at once. */
export function killAll(): void {
  for (const child of running) child.kill('SIGKILL')
}

export function isInstalled(program: string): boolean {
  return spawnSync(program, ['--version'], { stdio: 'ignore' }).status === 0
}

const syncs = 'fsync,fdatasync'
const strace = ['strace', '-D', '-f', '--seccomp-bpf', '-o', '/dev/null', '-e', `trace=${syncs}`]

/**
 * The command under which each fsync takes so many milliseconds longer: strace holds it back, and lets the other system
 * calls run at full speed (--seccomp-bpf).
 */
export function slowSync(ms: number): string[] {
  return [...strace, '-e', `inject=${syncs}:delay_exit=${ms}ms`]
}

/** Why a scenario cannot run here: undefined when the program is there. */
export function requireProgram(program: string): () => string | undefined {
  return () => (isInstalled(program) ? undefined : `${program} is not installed`)
}
