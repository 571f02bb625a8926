// What is known of processes from outside (proc_pid_stat(5)); nothing where there is no /proc.
import { readdirSync, readFileSync } from 'node:fs'

/** The children of a process, theirs, and so on. */
export function descendantsOf(pid: number): number[] {
  const parents = new Map(listProcesses().map((one) => [one, readStat(one)?.parent]))
  const found = [pid]
  for (const one of found) for (const [child, parent] of parents) if (parent === one) found.push(child)
  return found.slice(1)
}

/** Neither gone nor dead and not reaped yet. */
export function isRunning(pid: number): boolean {
  return !['Z', 'X', undefined].includes(readStat(pid)?.state)
}

function listProcesses(): number[] {
  try {
    return readdirSync('/proc')
      .filter((name) => /^\d+$/.test(name))
      .map(Number)
  } catch {
    return []
  }
}

/** `pid (name) state parent …`, where a name may hold anything. */
function readStat(pid: number): { state: string; parent: number } | undefined {
  try {
    const [, state = '', parent] = /.*\) (\S+) (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
    return { state, parent: Number(parent) }
  } catch {
    return undefined
  }
}
