// Checks a page of plants row by row, and that none is missing between them.
import { isUtf8 } from 'node:buffer'
import { scannedPlants, segmentPlants } from '../../limits.ts'
import { checksumOf, lineOf } from '../../store/format/checksum.ts'
import { checksumVersion, segmentsVersion } from '../../store/format/migrations.ts'
import type { Range, StoreView } from '../../store/view.ts'
import type { Fault } from './faults.ts'
import { findItemFault } from './item-fault.ts'

const replacement = '\ufffd'

/**
 * `last`: end of the page; `text`: a line per plant, see `lineOf`; `unchecked`: number of plants without a checksum.
 */
export type PageReport = { last: number; text: string; plants: number; unchecked: number; faults: Fault[] }

type Row = [position: number, id: number | null, item: string, checksum: number | null]

/** Checks the first plants of a range, whose last position must have a plant. Rejects with StoreUnavailable. */
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

/** True when all items are valid UTF-8; reading them as text would replace invalid bytes. */
async function isUtf8Page(view: StoreView, range: Range): Promise<boolean> {
  const { text } = await view.join('item', range, '')
  return isUtf8(text)
}

function findRowFault([position, id, item, checksum]: Row, isText: boolean): string | undefined {
  if (checksum !== null && checksumOf(position, id, item) !== checksum) return 'does not match its checksum'
  if (!isText && item.includes(replacement)) return 'is not in UTF-8'
  return findItemFault(id ?? undefined, item)
}

/** Checks segments with the page in which they end, once its plants were found in order. */
async function findSegmentFaults(view: StoreView, { after, last }: Range): Promise<Fault[]> {
  if (view.version < segmentsVersion) return []
  const rows = await view.select<[number]>(
    `SELECT last FROM segments WHERE last > $1 AND last <= $2 AND items <> coalesce(
      (SELECT ${view.dialect.joinedItems} FROM plants WHERE position > last - ${segmentPlants} AND position <= last), '')`,
    [after, last],
  )
  return rows.map(([position]) => ({ position, detail: 'ends a segment that differs from its plants' }))
}
