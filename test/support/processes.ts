// Processes: what those of a test inherit, and what is known of any from outside (proc_pid_stat(5); nothing without /proc).
import { readdirSync, readFileSync } from 'node:fs'

const isCovered = process.env._TAPJS_PROCESSINFO_COVERAGE_ === '1'

/**
 * The environment of a process that a test starts: where programs are, compiled code, short time-outs where the test has them,
 * and tap's instruments where it measures coverage.
 */
export function inherited(): NodeJS.ProcessEnv {
  const { PATH, NODE_COMPILE_CACHE, NODE_DISABLE_COMPILE_CACHE, TEST_NODE_OPTIONS } = process.env
  const instruments = process.execArgv.filter((option) => isCovered && /processinfo/.test(option))
  const tap = Object.entries(process.env).filter(([name]) => isCovered && name.startsWith('_TAPJS_'))
  const NODE_OPTIONS = [TEST_NODE_OPTIONS, ...instruments].filter(Boolean).join(' ')
  return { PATH, NODE_OPTIONS, NODE_COMPILE_CACHE, NODE_DISABLE_COMPILE_CACHE, ...Object.fromEntries(tap) }
}

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
