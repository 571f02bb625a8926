// The process that an import runs in: whether it is still at work.
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'

/** An id is used again later, so `started` belongs to it (proc_pid_stat(5)); it is null where there is no /proc. */
export type Owner = { host: string; pid: number; started: string | null }

export function findOwner(): Owner {
  return { host: hostname(), pid: process.pid, started: readStart(process.pid) }
}

/** True when the owner is another process of this machine that still runs. Other machines cannot be checked. */
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

/** Reads field 22 of `pid (name) state …`, where the name may hold anything. */
function readStart(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')')).split(' ')[20] as string
    /* c8 ignore next 3: coverage is counted on Linux; elsewhere there is no /proc */
  } catch {
    return null
  }
}
