// The rule for going on: behind what an earlier import consumed, if that part of the input is the same to the byte.
// Otherwise an input that was imported before is refused, unless it is to be added again.
import { count } from '../../runtime/count.ts'
import { StoreRefused } from '../../store/store.ts'
import type { ImportOptions } from './import-options.ts'
import { nameOf } from './input.ts'
import { beginning, type Note, type Place } from './position.ts'

/** What is known of an input. `matching`: notes of imports whose part of the input is the same. */
type Known = { notes: Note[]; matching: Note[]; path: string | undefined; readAs: string }

/** `refuseChanged`: makes the error of an input whose beginning turns out to be another. */
export type Start = Place & { refuseChanged: () => StoreRefused }

/**
 * Finds where an import starts. Throws StoreRefused when the input was imported before and neither `resume` nor
 * `restart` is set, or when it was changed since.
 */
export function findStart({ notes, matching, path, readAs }: Known, options: ImportOptions): Start {
  const { resume, restart, say } = options
  const name = nameOf(options.path)
  const named = notes.filter((note) => path !== undefined && note.path === path && note.end.valid > 0)
  const own = findLongest(named)
  if (own && !restart && !matching.includes(own)) throw refuseChanged(name, own)
  const found = restart ? undefined : findLongest(matching.filter(({ end }) => resume || end.valid > 0))
  if (found && !resume)
    throw new StoreRefused(
      `${name}: ${describe(found)}; --resume goes on behind them, --restart begins at the start and adds them again`,
    )
  if (found && found.readAs !== readAs)
    throw new StoreRefused(`${name}: ${describe(found)}, with other options: it cannot be resumed with these`)
  if (found) say(`${name}: ${describe(found)}`)
  else if (resume) say(`${name}: nothing is known of an earlier import, so this one begins at the start`)
  const { from, end } = found ?? { from: beginning, end: beginning }
  return { from, end, refuseChanged: () => refuseChanged(name, found as Note) }
}

/** Finds the note that came furthest since the last time that an import began anew. */
function findLongest(notes: Note[]): Note | undefined {
  const latest = notes.slice(
    Math.max(
      0,
      notes.findLastIndex(({ restarted }) => restarted),
    ),
  )
  return latest.sort((a, b) => b.end.bytes - a.end.bytes)[0]
}

function refuseChanged(name: string, note: Note): StoreRefused {
  return new StoreRefused(
    `${name} was changed: ${describe(note)}, and these ${count(note.end.bytes, 'byte')} are no longer its beginning, ` +
      'so it cannot be resumed; put what is new into a file of its own, or add all of it again with --restart',
  )
}

function describe({ end, done, at, path }: Note): string {
  const where = path === undefined ? '' : ` from ${path}`
  const already = `${count(end.records, 'record')} already imported on ${new Date(at).toISOString()}${where}`
  return done ? already : `${already}, when the import was cut short`
}
