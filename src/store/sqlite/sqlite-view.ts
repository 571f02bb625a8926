// A SQLite file opened for reading only, while other processes may write to it; and its status from outside: its size,
// and the processes that have it open.
import { existsSync, readFileSync, statSync } from 'node:fs'
import { basename } from 'node:path'
import { resolveLinks } from '../../runtime/same-file.ts'
import { StoreUnavailable, type Value } from '../store.ts'
import type { EngineStatus, ServiceStatus, StoreView } from '../view.ts'
import { existingPath } from './files/path.ts'
import { openStoreFile, type ReadOnlyFile, readVersion } from './files/read-only.ts'
import { named, sqliteDialect } from './sqlite-dialect.ts'

/** Opens a view. Throws StoreRefused. */
export function openSqliteView(url: string): StoreView {
  const path = existingPath(url)
  return { ...makeView(openStoreFile(path)), readStatus: async () => readStatus(path) }
}

/** Makes a view of an open file, apart from its status. */
export function makeView({ db, checkSame }: ReadOnlyFile): Omit<StoreView, 'readStatus'> {
  async function select<R>(text: string, values: Value[] = []): Promise<R[]> {
    try {
      const statement = db.prepare(text)
      statement.setReturnArrays(true)
      const rows = statement.all(named(values))
      checkSame?.()
      return rows as R[]
    } catch (cause) {
      throw new StoreUnavailable('unread', (cause as Error).message, { cause })
    }
  }
  return {
    dialect: sqliteDialect,
    version: readVersion(db),
    select,
    // A range of the primary key is read, and so joined, in its order. Blobs are not decoded.
    async join(expression, { after, last }, separator) {
      const texts = `CAST(group_concat(${expression}, $3) AS BLOB)`
      const text = `SELECT count(*), coalesce(${texts}, '') FROM plants WHERE position > $1 AND position <= $2`
      const [row] = await select(text, [after, last, separator])
      const [count, joined] = row as unknown as [number, Uint8Array]
      return { count, text: Buffer.from(joined) }
    },
    close: async () => db.close(),
  }
}

/** A process with the database open in WAL mode holds a lock behind this offset (SQLite, os.h, PENDING_BYTE). */
const lockByte = 0x40000000

function readStatus(path: string): EngineStatus {
  const target = resolveLinks(path)
  const size = (name: string) => statSync(name, { throwIfNoEntry: false })?.size ?? 0
  return {
    engineVersion: String(process.versions.sqlite),
    bytes: size(target) + size(`${target}-wal`),
    service: findService(target),
    cluster: null,
  }
}

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
