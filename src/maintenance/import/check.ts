// Checks a record by the schema of a new plant, like the body of a request, and makes it an entry of the log.
import { isUtf8 } from 'node:buffer'
import type { NewPlant } from '../../../schemas/plant.ts'
import type { Fault } from '../../../schemas/problem.ts'
import { serializeItem } from '../../plants/item.ts'
import { count } from '../../runtime/count.ts'
import type { Entry } from '../../store/store.ts'
import { escapePointer, findMemberFaults } from '../../validation/json.ts'
import { makeBodyCheck } from '../../validation/schema-faults.ts'
import { type Columns, type Fields, fieldNames, readCell, required } from './fields.ts'
import type { InputRecord } from './record.ts'

export type CheckOptions = {
  fields: Fields
  /** Set for a CSV input. */
  columns: Columns | undefined
  /** Removes white space around texts, and around the cells of numbers. */
  trim: boolean
}

export const notUtf8 = 'is not UTF-8; convert the input, from Latin-1 with: iconv -f latin1 -t utf-8'

/** Faults of a record. */
export type Refused = { faults: Fault[] }

type Value = Record<string, unknown>

export class RecordCheck {
  readonly #options: CheckOptions
  readonly #findFaults = makeBodyCheck('NewPlant')
  /** Pointers to the members or columns of the input, by those to the fields. */
  readonly #places: Map<string, string>

  constructor(options: CheckOptions) {
    this.#options = options
    const { fields } = options
    this.#places = new Map(fieldNames.map((name) => [`/${name}`, `/${escapePointer(fields[name])}`]))
  }

  check({ text, cells, fault }: InputRecord): Entry | Refused {
    if (fault) return { faults: [fault] }
    const decoded = decodeUtf8(text)
    if (decoded === undefined) return refuse(notUtf8)
    return cells === undefined ? this.#checkText(decoded) : this.#checkCells(cells)
  }

  #checkText(text: string): Entry | Refused {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return refuse(text.trim() === '' ? 'is empty, expected JSON' : 'is not JSON')
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return this.#judge(value, [])
    const plant = this.#takeMembers(value as Value)
    const checked = this.#judge(plant, [])
    return isAsWritten(text, checked) ? checked : this.#judge(plant, this.#findMemberFaults(text, value))
  }

  #findMemberFaults(text: string, value: object): Fault[] {
    const faults = findMemberFaults(text, value)
    if (!this.#options.fields.ignoreOthers) return faults
    return faults.flatMap((fault) => {
      const [field] = [...this.#places].find(([, place]) => fault.pointer === place) ?? []
      return field === undefined ? [] : { ...fault, pointer: field }
    })
  }

  #takeMembers(value: Value): Value {
    const { fields, trim } = this.#options
    if (!trim && !fields.ignoreOthers) return value
    const plant = fields.ignoreOthers ? {} : { ...value }
    for (const field of fieldNames) {
      if (!Object.hasOwn(value, fields[field])) continue
      const member = value[fields[field]]
      plant[field] = trim && typeof member === 'string' ? member.trim() : member
    }
    return plant
  }

  #checkCells(cells: string[]): Entry | Refused {
    const { trim } = this.#options
    const columns = this.#options.columns as Columns
    if (cells.length !== columns.width && !hasEmptyEnd(cells, columns))
      return refuse(`has ${count(cells.length, 'cell')}, the header row has ${columns.width}`)
    const plant: Value = {}
    for (const field of fieldNames) {
      const cell = cells[columns[field]]
      const text = trim ? cell?.trim() : cell
      // An empty cell of an optional field means none.
      if (text || required.has(field)) plant[field] = readCell(field, text as string)
    }
    return this.#judge(plant, [])
  }

  #judge(plant: unknown, found: Fault[]): Entry | Refused {
    const faults = this.#findFaults(plant, found)
    if (faults.length > 0) return { faults: faults.map((fault) => this.locate(fault)) }
    return { item: serializeItem(plant as NewPlant), id: (plant as NewPlant).id }
  }

  /** Points a fault at the member or column of the input. */
  locate<T extends { pointer?: string }>(fault: T): T {
    const { pointer = '' } = fault
    return { ...fault, pointer: this.#places.get(pointer) ?? pointer }
  }
}

/** True when the text is exactly how its plant is written: then parsing has lost nothing. */
function isAsWritten(text: string, checked: Entry | Refused): boolean {
  if ('faults' in checked || text.includes('\\')) return false
  const { item, id } = checked
  return text === (id === undefined ? item : `${item.slice(0, -1)},"id":${id}}`)
}

/** Decodes bytes, one per character. Undefined unless they are UTF-8: Node would replace others by U+FFFD. */
export function decodeUtf8(text: string): string | undefined {
  if (!/[\x80-\xff]/.test(text)) return text
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : undefined
}

/** True for a row that has empty cells below the empty columns at the end of the header row. */
function hasEmptyEnd(cells: string[], { width, cells: most }: Columns): boolean {
  return cells.length > width && cells.length <= most && cells.slice(width).every((cell) => cell === '')
}

function refuse(detail: string): Refused {
  return { faults: [{ code: 'format', detail, pointer: '' }] }
}

/** Describes the faults of a record in one line. */
export function describeFaults(faults: Pick<Fault, 'pointer' | 'detail'>[]): string {
  return faults.map(({ pointer = '', detail }) => `${pointer.slice(1)} ${detail}`.trim()).join('; ')
}
