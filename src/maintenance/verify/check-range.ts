// Checks plants row by row, a page at a time, and that none is missing between them.
import { isUtf8 } from 'node:buffer'
import { scannedPlants, segmentPlants } from '../../limits.ts'
import { checksumOf, lineOf } from '../../store/format/checksum.ts'
import { checksumVersion, segmentsVersion } from '../../store/format/migrations.ts'
import type { Range, StoreView } from '../../store/view.ts'
import type { Fault } from './faults.ts'
import { findItemFault } from './item-fault.ts'

const replacement = '\ufffd'

/** `last`: where the page ends; `text`: the line of each plant, see `lineOf`; `unchecked`: how many have no checksum. */
export type PageReport = { last: number; text: string; plants: number; unchecked: number; faults: Fault[] }

type Row = [position: number, id: number | null, item: string, checksum: number | null]

/** Checks the first plants of a range, at whose end there is one. Rejects with StoreUnavailable. */
export async function checkPage(view: StoreView, { after, last: head }: Range): Promise<PageReport> {
  const rows = await view.select<Row>(
    `SELECT position, id, item, ${view.version < checksumVersion ? 'NULL' : 'checksum'} FROM plants
      WHERE position > $1 AND position <= $2 ORDER BY position LIMIT ${scannedPlants}`,
    [after, head],
  )
  const last = rows.at(-1)?.[0] ?? head
  const range = { after, last }
  const isText = rows.some(([, , item]) => item.includes(replacement)) ? await isUtf8Page(view, range) : true
  const faults = rows.flatMap((row): Fault[] => {
    const detail = findRowFault(row, isText)
    return detail === undefined ? [] : [{ position: row[0], detail }]
  })
  const positions = [after, ...rows.map(([position]) => position), ...(rows.length === 0 ? [head + 1] : [])]
  faults.push(
    ...positions.flatMap((position, index) => findGap(positions[index - 1] ?? position - 1, position)),
  )
  if (faults.length === 0) faults.push(...(await findSegmentFaults(view, range)))
  return {
    last,
    plants: rows.length,
    text: rows.map(([position, id, item]) => `${lineOf(position, id, item)}\n`).join(''),
    unchecked: rows.filter(([, , , checksum]) => checksum === null).length,
    faults,
  }
}

function findGap(before: number, position: number): Fault[] {
  const missing = position - before - 1
  if (missing === 0) return []
  if (missing < 0) return [{ position, detail: 'is there twice' }]
  const plants = missing === 1 ? `plant ${before + 1} is` : `plants ${before + 1} to ${position - 1} are`
  return [{ detail: `${plants} missing` }]
}

/** Bytes that are no UTF-8 are replaced when they are read as text. */
async function isUtf8Page(view: StoreView, range: Range): Promise<boolean> {
  const { texts } = await view.join(['item'], range, '')
  return texts.every(isUtf8)
}

function findRowFault([position, id, item, checksum]: Row, isText: boolean): string | undefined {
  if (checksum !== null && checksumOf(position, id, item) !== checksum) return 'does not match its checksum'
  if (!isText && item.includes(replacement)) return 'is not in UTF-8'
  return findItemFault(id ?? undefined, item)
}

/** A segment is checked with the page in which it ends, and only beside plants that are in order. */
async function findSegmentFaults(view: StoreView, { after, last }: Range): Promise<Fault[]> {
  if (view.version < segmentsVersion) return []
  const rows = await view.select<[number]>(
    `SELECT last FROM segments WHERE last > $1 AND last <= $2 AND items <> coalesce(
      (SELECT ${view.dialect.joinedItems} FROM plants WHERE position > last - ${segmentPlants} AND position <= last), '')`,
    [after, last],
  )
  return rows.map(([position]) => ({ position, detail: 'ends a segment that differs from its plants' }))
}
