// Checks that a row of the log is what the service, or 1.0.0, would have written: a valid plant, in the stored format.
import { type NewPlant, NewPlant as schema } from '../../../schemas/plant.ts'
import { makeBodyCheck } from '../../http/validation.ts'
import { serializeItem } from '../../plants/item.ts'

const findFaults = makeBodyCheck(String(schema.$id))
/** Control characters that 1.0.0 accepted. */
const takenBefore = /[\u0080-\u009F]/g

/** Finds a fault of an item and its id, in words that follow "plant 7"; undefined if there is none. */
export function findItemFault(id: number | undefined, item: string): string | undefined {
  let value: unknown
  try {
    value = JSON.parse(item)
  } catch {
    return 'is not JSON'
  }
  // An id within the item is found below: serializeItem leaves it out, so the texts differ.
  if (id !== undefined && typeof value === 'object' && value !== null) (value as NewPlant).id = id
  const fault = findPlantFault(asTakenNow(item, value))
  if (fault !== undefined) return fault
  return serializeItem(value as NewPlant) === item ? undefined : 'is not in the stored format'
}

/** The plant without the control characters that 1.0.0 accepted, so that today's check passes it. */
function asTakenNow(item: string, value: unknown): unknown {
  const text = item.replace(takenBefore, '.')
  return text === item ? value : { ...JSON.parse(text), id: Object(value).id }
}

function findPlantFault(value: unknown): string | undefined {
  const [fault] = findFaults(value, [])
  return fault && `is not valid: ${`${fault.pointer?.slice(1)} ${fault.detail}`.trim()}`
}
