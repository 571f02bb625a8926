// What the store keeps of each import for ever, and the rule for going on: behind what an earlier import consumed, if that
// part of the input is the same to the byte. Otherwise an input that was imported before is refused.
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { count } from '../../runtime/count.ts'
import { StoreRefused } from '../../store/store.ts'
import type { ImportOptions } from './import-options.ts'
import { nameOf } from './input.ts'

/**
 * The end of a record: so many `records` and `bytes` of the input were consumed, `hash` is the SHA-256 (hex) of these
 * bytes, `line` is where the last record began. `valid`: records without a fault; `rejects`: length of their file.
 */
export type Position = typeof beginning
export const beginning = { records: 0, valid: 0, line: 0, bytes: 0, hash: '', rejects: 0 }

/** `end`: of the last batch; `from`: where it begins, as its rejects may not have been written. */
export type Place = { from: Position; end: Position }

/** A process. An id is used again, so `started` belongs to it (proc_pid_stat(5)); null where there is no /proc. */
type Owner = { host: string; pid: number; started: string | null }

/**
 * `path`: undefined for a pipe; `head`: of the input as it was at first; `run`: the last import that had to do with this
 * one; `readAs`: options that change what a record is; `at`: in milliseconds since 1970; `size`: of the whole input, in
 * bytes, once all of it was read; `restarted`: from its beginning in spite of imports before.
 */
export type Note = Place &
  Owner & {
    path: string | undefined
    head: Pick<Position, 'bytes' | 'hash'>
    run: string
    readAs: string
    at: number
    size?: number
    restarted: boolean
  }

/** A pattern for the keys of the notes in `meta`, where a number stands for `%`. */
export const noteKeys = 'import/%'

/**
 * `matching`: notes of imports whose part of the input is the same; `size`: of the input, where it can be known; `path`:
 * undefined for a pipe.
 */
type Known = {
  notes: Note[]
  matching: Note[]
  size: number | undefined
  path: string | undefined
  readAs: string
}

/** `refuseChanged`: makes the error of an input whose beginning turns out to be another. */
export type Start = Place & { refuseChanged?: () => StoreRefused }

/**
 * Finds where an import starts. Throws StoreRefused when the input was imported before and neither `resume` nor
 * `restart` is set, or when it was changed since.
 */
export function findStart({ notes, matching, size, path, readAs }: Known, options: ImportOptions): Start {
  const { resume, restart, say } = options
  const name = nameOf(options.path)
  if (restart) return { from: beginning, end: beginning }
  const named = path === undefined ? [] : notes.filter((note) => note.path === path && note.end.valid > 0)
  const own = findLongest(named)
  if (own && !matching.includes(own)) throw refuseChanged(name, own)
  // Another input may begin with the whole of an earlier one.
  const isSame = (note: Note) => note.size === undefined || size === undefined || note.size === size
  const found = own ?? findLongest(matching.filter((note) => resume || (note.end.valid > 0 && isSame(note))))
  if (found && !resume) throw refuseAgain(name, found)
  if (found && found.readAs !== readAs)
    throw new StoreRefused(
      `${name}: the options differ from those of the import that was cut short: it cannot be resumed`,
    )
  if (found) say(`${name}: ${count(found.end.records, 'record')} already imported`)
  else if (resume) say(`${name}: nothing is known of an earlier import, so this one begins at the start`)
  const { from, end } = found ?? { from: beginning, end: beginning }
  return { from, end, refuseChanged: () => refuseChanged(name, found as Note) }
}

/** Finds the note that came furthest since the last time that an import began anew. */
function findLongest(notes: Note[]): Note | undefined {
  const anew = notes.findLastIndex(({ restarted }) => restarted)
  return notes.slice(Math.max(0, anew)).sort((a, b) => b.end.bytes - a.end.bytes)[0]
}

function refuseAgain(name: string, { at, end, path, size }: Note): StoreRefused {
  const when = `on ${new Date(at).toISOString()}${path === undefined ? '' : ` from ${path}`}`
  const records = count(end.records, 'record')
  return new StoreRefused(
    size === undefined
      ? `${name}: an import was cut short after ${records}, ${when}; --resume goes on there, --restart begins anew and adds them again`
      : `${name}: ${records} already imported ${when}; --resume adds what is new, --restart adds all of them again`,
  )
}

function refuseChanged(name: string, { at, end }: Note): StoreRefused {
  return new StoreRefused(
    `${name} does not begin any more with what was imported on ${new Date(at).toISOString()} (${count(end.records, 'record')}, ` +
      `${count(end.bytes, 'byte')}): it cannot be resumed; import what is new from a file of its own, or all of it with --restart`,
  )
}

export function findOwner(): Owner {
  return { host: hostname(), pid: process.pid, started: readStart(process.pid) }
}

/** True when the owner is another process of this machine that still runs; elsewhere it cannot be known. */
export function isAtWork({ host, pid, started }: Owner): boolean {
  return host === hostname() && pid !== process.pid && started !== null && started === readStart(pid)
}

/** Reads field 22 of `pid (name) state …`, where the name may hold anything. */
function readStart(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')')).split(' ')[20] as string
  } catch {
    return null
  }
}
