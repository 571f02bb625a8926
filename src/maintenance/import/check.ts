// Checks a record by the schema of a new plant, like the body of a request, and makes it an entry of the log.
import { isUtf8 } from 'node:buffer'
import type { NewPlant } from '../../../schemas/plant.ts'
import type { Fault } from '../../../schemas/problem.ts'
import { serializeItem } from '../../plants/item.ts'
import { count } from '../../runtime/count.ts'
import type { Entry } from '../../store/engine.ts'
import { escapePointer, findMemberFaults } from '../../validation/json.ts'
import { makeBodyCheck } from '../../validation/schema-faults.ts'
import {
  type Columns,
  type FieldOptions,
  type Fields,
  fieldNames,
  findColumns,
  readCell,
  required,
  resolveFields,
} from './fields.ts'
import { InputError, type InputRecord } from './record.ts'

const notUtf8 = 'is not UTF-8; convert the input, from Latin-1 with: iconv -f latin1 -t utf-8'

/** Faults of a record. */
export type Refused = { faults: Fault[] }

type Value = Record<string, unknown>

export class RecordCheck {
  readonly #fields: Fields
  readonly #trim: boolean
  /** Set for a CSV input. */
  readonly #columns: Columns | undefined
  readonly #findFaults = makeBodyCheck('NewPlant')

  /** `trim`: removes white space around texts, and around cells. Throws InputError when the header row does not fit. */
  constructor(options: FieldOptions & { trim?: boolean }, header: InputRecord | undefined) {
    this.#fields = resolveFields(options)
    this.#trim = options.trim ?? false
    if (header) this.#columns = this.#readColumns(header)
  }

  #readColumns({ text, cells = [], line }: InputRecord): Columns {
    if (decodeUtf8(text) === undefined) throw new InputError(`the header row ${notUtf8}`, line)
    return findColumns(this.#trim ? cells.map((cell) => cell.trim()) : cells, this.#fields, line)
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

  /** Finds faults that parsing hides; those of members that are left out do not count. */
  #findMemberFaults(text: string, value: object): Fault[] {
    const pointers = new Map(fieldNames.map((name) => [pointTo(this.#fields[name]), pointTo(name)]))
    return findMemberFaults(text, value).flatMap((fault) => {
      const pointer = this.#fields.ignoreOthers ? pointers.get(fault.pointer as string) : fault.pointer
      return pointer === undefined ? [] : { ...fault, pointer }
    })
  }

  #takeMembers(value: Value): Value {
    const fields = this.#fields
    if (!this.#trim && !fields.ignoreOthers) return value
    const plant = fields.ignoreOthers ? {} : { ...value }
    for (const field of fieldNames.filter((name) => Object.hasOwn(value, fields[name]))) {
      const member = value[fields[field]]
      plant[field] = this.#trim && typeof member === 'string' ? member.trim() : member
    }
    return plant
  }

  #checkCells(cells: string[]): Entry | Refused {
    const columns = this.#columns as Columns
    // Spreadsheets have empty cells behind the last one.
    if (cells.length < columns.width || cells.slice(columns.width).some((cell) => cell !== ''))
      return refuse(`has ${count(cells.length, 'cell')}, the header row has ${columns.width}`)
    const plant: Value = {}
    for (const field of fieldNames) {
      const cell = cells[columns[field]]
      const text = this.#trim ? cell?.trim() : cell
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
    const field = fieldNames.find((name) => fault.pointer === pointTo(name))
    return field === undefined ? fault : { ...fault, pointer: pointTo(this.#fields[field]) }
  }
}

function pointTo(name: string): string {
  return `/${escapePointer(name)}`
}

/** True when the text is exactly how its plant is written: then parsing has lost nothing. */
function isAsWritten(text: string, checked: Entry | Refused): boolean {
  if ('faults' in checked || text.includes('\\')) return false
  const { item, id } = checked
  return text === (id === undefined ? item : `${item.slice(0, -1)},"id":${id}}`)
}

/** Decodes bytes, one per character. Undefined unless they are UTF-8: Node would replace others by U+FFFD. */
function decodeUtf8(text: string): string | undefined {
  if (!/[\x80-\xff]/.test(text)) return text
  const bytes = Buffer.from(text, 'latin1')
  return isUtf8(bytes) ? bytes.toString() : undefined
}

function refuse(detail: string): Refused {
  return { faults: [{ code: 'format', detail, pointer: '' }] }
}

/** Describes the faults of a record in one line. */
export function describeFaults(faults: Pick<Fault, 'pointer' | 'detail'>[]): string {
  return faults.map(({ pointer = '', detail }) => `${pointer.slice(1)} ${detail}`.trim()).join('; ')
}
