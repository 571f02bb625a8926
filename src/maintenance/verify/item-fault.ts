// Whether a row of the log is what the service would have written: a plant that keeps to the schema, in the stored format.
import { type NewPlant, Plant, NewPlant as schema } from '../../../schemas/plant.ts'
import { makeBodyCheck } from '../../http/validation.ts'
import { serializeItem } from '../../plants/item.ts'

const findFaults = makeBodyCheck(String(schema.$id))

/** An item without escapes: a valid plant with these texts is written just so. Most are, and need not be parsed. */
const plain = new RegExp(`^\\{${Object.entries(Plant.properties).map(makePattern).join('')}\\}$`)

/** The text of a field, in a group of its name; fields that hold no text have none, so items with them are parsed. */
/* c8 ignore next 5: each field is a text that is required; test/contract/fields.test.ts adds another kind, in processes of its own */
function makePattern([field, { type }]: [string, { type: string }], index: number): string {
  if (type !== 'string') return ''
  const text = `${index > 0 ? ',' : ''}"${field}":"(?<${field}>[^"\\\\]*)"`
  return (Plant.required as string[]).includes(field) ? text : `(?:${text})?`
}

/** What is wrong with an item and its id, in words that follow "plant 7"; undefined when nothing is. */
export function findItemFault(id: number | undefined, item: string): string | undefined {
  const texts = plain.exec(item)?.groups
  if (texts) return findPlantFault({ ...texts, id })
  let value: unknown
  try {
    value = JSON.parse(item)
  } catch {
    return 'is not JSON'
  }
  // An id inside the item is no longer there in the text that is compared below.
  if (id !== undefined && typeof value === 'object' && value !== null) (value as NewPlant).id = id
  const fault = findPlantFault(value)
  if (fault !== undefined) return fault
  return serializeItem(value as NewPlant) === item ? undefined : 'is not in the stored format'
}

function findPlantFault(value: unknown): string | undefined {
  const [fault] = findFaults(value, [])
  return fault && `is not valid: ${`${fault.pointer?.slice(1)} ${fault.detail}`.trim()}`
}
