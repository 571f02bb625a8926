// Checks the plants of a range, row by row.
import { isUtf8 } from 'node:buffer'
import { crc32 } from 'node:zlib'
import { segmentPlants } from '../../limits.ts'
import { checksumOf, lineInSql } from '../../store/format/checksum.ts'
import type { Range, StoreView } from '../../store/view.ts'
import type { Fault } from './faults.ts'
import { findItemFault } from './item-fault.ts'

/** The first schema version whose rows carry a checksum. */
const checksumVersion = 3
/** The first that keeps segments. */
const segmentsVersion = 4

/** `lines`: the line of each plant, see `lineOf`; `unchecked`: how many have no checksum. */
export type PageReport = { lines: Buffer; unchecked: number; faults: Fault[] }

/** Checks the plants of a range, all of which must be there. Rejects with StoreUnavailable. */
export async function checkPage(view: StoreView, range: Range): Promise<PageReport> {
  const checksum = checksumInSql(view)
  const { texts } = await view.join([lineInSql, `coalesce(CAST(${checksum} AS TEXT), '')`], range, '\n')
  const [lines, checksums] = texts as [Buffer, Buffer]
  const unchecked = countUnchecked(lines, checksums.toString().split('\n'), range)
  if (unchecked !== undefined) return { lines, unchecked, faults: await findSegmentFaults(view, range) }
  return { lines, ...(await findFaults(view, range, isUtf8(lines))) }
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

/** How many plants have no checksum; undefined when anything at all is wrong with one. */
function countUnchecked(lines: Buffer, checksums: string[], { after, last }: Range): number | undefined {
  const rows = lines.toString().split('\n')
  if (rows.length !== last - after || !isUtf8(lines)) return undefined
  let unchecked = 0
  for (const [index, row] of rows.entries()) {
    const checksum = checksums[index]
    if (checksum === '') unchecked++
    else if (crc32(row) !== Number(checksum)) return undefined
    const [idAt, itemAt] = [row.indexOf('\t') + 1, row.indexOf('\t', row.indexOf('\t') + 1) + 1]
    if (Number(row.slice(0, idAt - 1)) !== after + index + 1) return undefined
    const id = itemAt - idAt === 1 ? undefined : Number(row.slice(idAt, itemAt - 1))
    if (findItemFault(id, row.slice(itemAt)) !== undefined) return undefined
  }
  return unchecked
}

type Row = [position: number, id: number | null, item: string, checksum: number | null]

/** The slow way, which names each fault. */
async function findFaults(view: StoreView, { after, last }: Range, isText: boolean) {
  const rows = await view.select<Row>(
    `SELECT position, id, item, ${checksumInSql(view)} FROM plants
      WHERE position > $1 AND position <= $2 ORDER BY position`,
    [after, last],
  )
  const faults = rows.flatMap((row): Fault[] => {
    const detail = findRowFault(row, isText)
    return detail === undefined ? [] : [{ position: row[0], detail }]
  })
  if (rows.length !== last - after || rows.some(([position], index) => position !== after + index + 1))
    faults.push({ detail: `plants ${after + 1} to ${last} are not all there` })
  return { unchecked: rows.filter(([, , , checksum]) => checksum === null).length, faults }
}

function findRowFault([position, id, item, checksum]: Row, isText: boolean): string | undefined {
  if (checksum !== null && checksumOf(position, id, item) !== checksum) return 'does not match its checksum'
  // What is no UTF-8 was replaced when it was read.
  if (!isText && item.includes('\ufffd')) return 'is not in UTF-8'
  return findItemFault(id ?? undefined, item)
}

function checksumInSql({ version }: StoreView): string {
  return version < checksumVersion ? 'NULL' : 'checksum'
}
