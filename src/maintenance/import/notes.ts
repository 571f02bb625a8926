// What the store keeps of each import for ever: one note per run, under its number in `meta`.
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import type { Store } from '../../store/engine.ts'

/** The first bytes of an input, and their SHA-256 (hex). */
export type Beginning = { bytes: number; hash: string }

type Counts = { bytes: number; records: number; valid: number }

/**
 * How far an import has come: behind so many records, of which `valid` had no fault. `hash`: of all bytes up to there;
 * `batch`: where the last batch begins, as its rejects may not have been written, and the length of their file there.
 */
export type Position = Counts & { hash: string; batch: Counts & { rejects: number } }

const nothing: Counts = { bytes: 0, records: 0, valid: 0 }
export const beginning: Position = { ...nothing, hash: '', batch: { ...nothing, rejects: 0 } }

/**
 * `path`: undefined for a pipe; `head`: of the input as it was at first; `run`: the last import that had to do with this
 * one; `at`: in milliseconds since 1970; `size`: of the whole input, once all of it was read.
 */
export type Note = {
  path: string | undefined
  head: Beginning
  owner: Owner
  run: string
  at: number
  end: Position
  size?: number
}

/** What the keys of the notes begin with; a number follows. */
export const noteKeys = 'import/'

/** A note with its place in the store. */
export type NoteRow = { key: string; value: string; note: Note }

/** Reads notes, in the order of their numbers. */
export async function readNotes({ notes }: Store): Promise<NoteRow[]> {
  return [...(await notes.read(noteKeys))]
    .map(([key, value]) => ({ key, value, note: JSON.parse(value) as Note }))
    .sort((a, b) => numberOf(a.key) - numberOf(b.key))
}

export function numberOf(key: string): number {
  return Number(key.slice(noteKeys.length))
}

/** A process. An id is used again, so `started` belongs to it (proc_pid_stat(5)); null where there is no /proc. */
type Owner = { host: string; pid: number; started: string | null }

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
