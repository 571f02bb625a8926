// Holds a record against the schema of a new plant, as the body of a request is, and makes an entry of the log of it.
import type { NewPlant } from '../../schemas/plant.ts'
import type { Fault } from '../../schemas/problem.ts'
import { escapePointer, findMemberFaults } from '../http/json.ts'
import { makeBodyCheck } from '../http/validation.ts'
import { serializeItem } from '../plants/item.ts'
import type { Entry } from '../store/store.ts'
import { type Columns, type FieldName, type Fields, fieldNames } from './fields.ts'
import { invalidMark, type Utf8Chunks } from './utf8.ts'

export type CheckOptions = {
  fields: Fields
  /** Of a CSV input. */
  columns: Columns | undefined
  /** Takes away white space around names and tags, and around the cells of ids. */
  trim: boolean
  /** Knows whether bytes were masked. */
  utf8: Utf8Chunks
}

/** What is wrong with a record. */
export type Refused = { faults: Fault[] }

type Value = Record<string, unknown>

export class RecordCheck {
  readonly #options: CheckOptions
  readonly #findFaults = makeBodyCheck('NewPlant')
  readonly #renamed: boolean
  /** The names of members that are looked at, as pointers. */
  readonly #pointers: Map<string, FieldName>

  constructor(options: CheckOptions) {
    this.#options = options
    const { fields } = options
    this.#renamed = fields.ignoreOthers
    this.#pointers = new Map(fieldNames.map((field) => [`/${escapePointer(fields[field])}`, field]))
  }

  /** `source`: JSON text, or the cells of a row. */
  check(source: string | string[]): Entry | Refused {
    if (this.#options.utf8.sawInvalid && source.toString().includes(invalidMark))
      return { faults: [{ code: 'format', detail: 'is not UTF-8', pointer: '' }] }
    return typeof source === 'string' ? this.#checkText(source) : this.#checkCells(source)
  }

  #checkText(text: string): Entry | Refused {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      const detail = text.trim() === '' ? 'is empty, expected JSON' : 'is not JSON'
      return { faults: [{ code: 'format', detail, pointer: '' }] }
    }
    if (typeof value !== 'object' || value === null || Array.isArray(value)) return this.#judge(value, [])
    const plant = this.#trim(this.#renamed ? this.#rename(value as Value) : (value as Value))
    const found = this.#isPlain(text, plant) ? [] : this.#findMemberFaults(text, value)
    return this.#judge(plant, found)
  }

  /** Whether the text is what the plant would be written as: then nothing was lost when it was read. */
  #isPlain(text: string, plant: Value): boolean {
    const { name, tag, id } = plant
    if (typeof name !== 'string' || typeof tag !== 'string' || text.includes('\\')) return false
    const start = `{"name":"${name}","tag":"${tag}"`
    return text === (id === undefined ? `${start}}` : `${start},"id":${id}}`)
  }

  #findMemberFaults(text: string, value: object): Fault[] {
    const faults = findMemberFaults(text, value)
    if (!this.#renamed) return faults
    return faults.flatMap((fault) => {
      const field = this.#pointers.get(String(fault.pointer))
      return field === undefined ? [] : { ...fault, pointer: `/${field}` }
    })
  }

  #rename(value: Value): Value {
    const { fields } = this.#options
    const plant: Value = {}
    for (const field of fieldNames)
      if (Object.hasOwn(value, fields[field])) plant[field] = value[fields[field]]
    return plant
  }

  #trim(plant: Value): Value {
    if (!this.#options.trim) return plant
    const { name, tag } = plant
    return {
      ...plant,
      ...(typeof name === 'string' && { name: name.trim() }),
      ...(typeof tag === 'string' && { tag: tag.trim() }),
    }
  }

  #checkCells(cells: string[]): Entry | Refused {
    const { columns, trim } = this.#options
    const { name, tag, id, width } = columns as Columns
    if (cells.length !== width) return { faults: [ragged(cells.length, width)] }
    const plant: Value = { name: cells[name], tag: cells[tag] }
    const number = id === -1 ? '' : trim ? cells[id]?.trim() : cells[id]
    if (number) plant.id = readNumber(number)
    return this.#judge(this.#trim(plant), [])
  }

  #judge(plant: unknown, found: Fault[]): Entry | Refused {
    const faults = this.#findFaults(plant, found)
    if (faults.length > 0) return { faults: faults.map((fault) => this.#locate(fault)) }
    return { item: serializeItem(plant as NewPlant), id: (plant as NewPlant).id }
  }

  /** Says where in the input a fault is. */
  #locate(fault: Fault): Fault {
    const field = fieldNames.find((name) => fault.pointer === `/${name}`)
    if (field === undefined) return fault
    return { ...fault, pointer: `/${escapePointer(this.#options.fields[field])}` }
  }
}

/** An id is decimal digits: what is written otherwise stays text, and is refused. */
function readNumber(text: string): number | string {
  return /^(0|[1-9]\d*)$/.test(text) ? Number(text) : text
}

function ragged(cells: number, width: number): Fault {
  const cell = `cell${cells === 1 ? '' : 's'}`
  return { code: 'format', detail: `has ${cells} ${cell}, the header row has ${width}`, pointer: '' }
}

/** The faults of a record in one line. */
export function describeFaults(faults: Fault[]): string {
  return faults.map(({ pointer = '', detail }) => `${pointer.slice(1)} ${detail}`.trim()).join('; ')
}
