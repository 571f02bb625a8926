// Names the process of an import, so that a second one notices that it is running.
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'

/** `started`: tells the process from a later one of the same number, where the system says (proc_pid_stat(5)). */
export type Owner = { host: string; pid: number; started: string | null }

export function thisProcess(): Owner {
  return { host: hostname(), pid: process.pid, started: readStart(process.pid) }
}

/** True when another process of this machine is still there. Those of other machines are not known. */
export function isAtWork({ host, pid, started }: Owner): boolean {
  return host === hostname() && pid !== process.pid && exists(pid) && started === readStart(pid)
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** `pid (name) state …`, where a name may hold anything; the start is the 22nd field. */
function readStart(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')')).split(' ')[20] as string
    /* c8 ignore next 3: coverage is counted on Linux; elsewhere there is no /proc */
  } catch {
    return null
  }
}
