// Checks a page of plants row by row: that each is what the service, or 1.0.0, would have written, and that none is
// missing between them.
import { isUtf8 } from 'node:buffer'
import { type NewPlant, NewPlant as schema } from '../../../schemas/plant.ts'
import { scannedPlants } from '../../limits.ts'
import { serializeItem } from '../../plants/item.ts'
import type { Damage, Positions, StoredPlant, StoreView } from '../../store/engine.ts'
import { checksumOf, lineOf } from '../../store/format/checksum.ts'
import { makeBodyCheck } from '../../validation/schema-faults.ts'

const replacement = '\ufffd'
/** Control characters that 1.0.0 accepted. */
const takenBefore = /[\u0080-\u009F]/g
const findBodyFaults = makeBodyCheck(String(schema.$id))

/** `unread`: the reason why the plant at `last` cannot be read. */
export type PageReport = Awaited<ReturnType<typeof checkPage>> & { unread?: string }

/**
 * Checks the first plants of a range. Up to position `oldPlants` a row may have no checksum. `last`: end of the page;
 * `text`: a line per plant, see `lineOf`; `unchecked`: number of plants without a checksum. Rejects with StoreUnavailable.
 */
export async function checkPage(view: StoreView, { after, last: head }: Positions, oldPlants: number) {
  const rows = await view.plants({ after, last: head }, scannedPlants)
  const last = rows.length < scannedPlants ? head : (rows.at(-1) as StoredPlant).position
  const isText = await isUtf8Page(view, rows, { after, last })
  const faults: Damage[] = []
  let [before, text, unchecked] = [after, '', 0]
  for (const { position, id, item, checksum } of rows) {
    if (position > before + 1) faults.push(describeGap(before + 1, position - 1))
    if (position === before) faults.push({ position, detail: 'is there twice' })
    const isIntact = checksum === null || checksumOf(position, id, item) === checksum
    const isStripped = checksum === null && position > oldPlants
    const itemFault = isIntact ? findItemFault(id, item, isText) : 'does not match its checksum'
    const detail = itemFault ?? (isStripped ? 'has lost its checksum' : undefined)
    if (detail !== undefined) faults.push({ position, detail })
    text += `${lineOf(position, id, item)}\n`
    if (checksum === null && !isStripped) unchecked++
    before = position
  }
  if (before < last) faults.push(describeGap(before + 1, last))
  return { last, text, plants: rows.length, unchecked, faults }
}

function describeGap(first: number, last: number): Damage {
  return { detail: `${first === last ? `plant ${first} is` : `plants ${first} to ${last} are`} missing` }
}

/** True when all items are valid UTF-8; reading them as text replaces invalid bytes. */
async function isUtf8Page(view: StoreView, rows: StoredPlant[], range: Positions): Promise<boolean> {
  if (!rows.some(({ item }) => item.includes(replacement))) return true
  const { text } = await view.join(range, '')
  return isUtf8(text)
}

/** Finds a fault of an item and its id, in words that follow "plant 7"; undefined if there is none. */
function findItemFault(id: number | null, item: string, isText: boolean): string | undefined {
  if (!isText && item.includes(replacement)) return 'is not in UTF-8'
  // Today's check refuses what 1.0.0 accepted.
  const text = item.replace(takenBefore, '.')
  let value: unknown
  try {
    value = JSON.parse(text)
  } catch {
    return 'is not JSON'
  }
  // An id within the item is found below: serializeItem leaves it out, so the texts differ.
  if (id !== null && typeof value === 'object' && value !== null) (value as NewPlant).id = id
  const [fault] = findBodyFaults(value, [])
  if (fault) return `is not valid: ${`${fault.pointer?.slice(1)} ${fault.detail}`.trim()}`
  return serializeItem(value as NewPlant) === text ? undefined : 'is not in the stored format'
}
