// Finds, from outside, the processes that have a SQLite file open.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import type { ServiceStatus } from '../status.ts'

/** A process with the database open in WAL mode holds a lock behind this offset (SQLite, os.h, PENDING_BYTE). */
const lockByte = 0x40000000

/**
 * Finds running services. Linux lists the holders of locks (proc_locks(5)) in the same PID namespace, and so not in
 * other containers. Elsewhere a missing `-wal` means that there are none; an existing one proves nothing, as it remains
 * when a process is killed, or when a reader closes last.
 */
export function findService(path: string, proc = '/proc'): ServiceStatus {
  if (!existsSync(`${proc}/locks`)) return { running: existsSync(`${path}-wal`) ? null : false, by: [] }
  const holders = listHolders(path, proc).filter((pid) => pid !== process.pid)
  const commands = holders.map((pid) => ({ pid, args: readArguments(pid, proc) }))
  return {
    running: commands.some(({ args }) => isService(args)),
    by: commands.map(
      ({ pid, args }) => `${isService(args) ? 'serve' : basename(args[0] ?? 'process')} (${pid})`,
    ),
  }
}

/** Lists the processes with locks, by inode alone: the device in /proc/locks may differ from that of stat(2). */
function listHolders(path: string, proc: string): number[] {
  const { ino } = statSync(path)
  const pids = readFileSync(`${proc}/locks`, 'utf8')
    .split('\n')
    .map((line) => /POSIX\s+\S+\s+\S+\s+(\d+)\s+\S+:(\d+)\s+(\d+)/.exec(line) ?? [])
    .filter(([, , inode, start]) => Number(inode) === ino && Number(start) > lockByte)
    .map(([, pid]) => Number(pid))
  return [...new Set(pids)]
}

/** Reads the arguments of a process; empty when it has ended. */
function readArguments(pid: number, proc: string): string[] {
  try {
    return readFileSync(`${proc}/${pid}/cmdline`, 'utf8').split('\0')
  } catch {
    return []
  }
}

function isService(args: string[]): boolean {
  const program = basename(args[args.indexOf('serve') - 1] ?? '')
  return /^(plant-store|cli\.[jt]s$)/.test(program)
}
