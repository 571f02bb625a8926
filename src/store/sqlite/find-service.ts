// Finds the processes that have a SQLite file open, without their cooperation.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import type { ServiceStatus } from '../engine.ts'

/**
 * A process that has the database open in WAL mode holds a lock on a byte after this one (SQLite, os.h, PENDING_BYTE).
 */
const lockByte = 0x40000000

/**
 * Finds running services. Linux lists the holders of locks (proc_locks(5)) in the same PID namespace, and so not in
 * other containers. Elsewhere a missing `-wal` means that there are none; an existing one proves nothing, as it remains
 * when a process is killed, or when a reader closes last.
 */
export function findService(path: string, proc = '/proc'): ServiceStatus {
  if (!existsSync(`${proc}/locks`)) return { running: existsSync(`${path}-wal`) ? null : false, by: [] }
  const { ino } = statSync(path)
  // By inode alone: the device in /proc/locks may differ from that of stat(2).
  const locks = readFileSync(`${proc}/locks`, 'utf8').matchAll(/POSIX +\S+ +\S+ +(\d+) +\S+:(\d+) +(\d+)/g)
  const held = [...locks].filter(([, , inode, start]) => Number(inode) === ino && Number(start) > lockByte)
  const holders = new Set(held.map(([, pid]) => Number(pid)))
  holders.delete(process.pid)
  const by = [...holders].map((pid) => `${nameProcess(pid, proc)} (${pid})`)
  return { running: by.some((name) => name.startsWith('serve ')), by }
}

/** Names a process by its arguments: `serve` is a service. */
function nameProcess(pid: number, proc: string): string {
  try {
    const args = readFileSync(`${proc}/${pid}/cmdline`, 'utf8').split('\0')
    const program = basename(args[args.indexOf('serve') - 1] ?? '')
    return /^(plant-store|cli\.[jt]s$)/.test(program) ? 'serve' : basename(args[0] as string)
  } catch {
    // It has ended.
    return 'process'
  }
}
