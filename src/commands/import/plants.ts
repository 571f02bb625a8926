// Reads records as plants: maps members or columns to fields, and checks each plant by the schema of the add operation.
import { isUtf8 } from 'node:buffer'
import type { TSchema } from '@sinclair/typebox'
import { NewPlant } from '../../../schemas/plant.ts'
import type { Fault } from '../../../schemas/problem.ts'
import { makePlantCheck } from '../../plants/plant-faults.ts'
import { type Form, notUtf8 } from './form.ts'
import { faultOf, InputError, type InputRecord } from './records.ts'

export type FieldName = keyof NewPlant
export const fieldNames = Object.keys(NewPlant.properties) as FieldName[]
export const required: ReadonlySet<string> = new Set(NewPlant.required)

type Members = Record<string, unknown>
/** `columns`: index of each field's column; `width`: the number of columns without empty ones at the end. */
type Header = { cells: string[]; columns: Record<FieldName, number>; width: number }
type Read = { plant?: NewPlant; faults?: Fault[] }

const byteOrderMark = '\xef\xbb\xbf'
/** How a cell is read, by the type of its field. Spreadsheets write TRUE, and pandas 7.0. */
const cellForms: Record<string, { form: RegExp; read: (cell: string) => unknown }> = {
  integer: { form: /^-?(0|[1-9]\d*)(\.0+)?$/, read: Number },
  number: { form: /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/, read: Number },
  boolean: { form: /^(true|false)$/i, read: (cell) => cell.toLowerCase() === 'true' },
}

export class PlantReader {
  /** The header row of CSV with its end of line, and a line like `sep=;` before it. */
  headerText = ''
  readonly #form: Form
  readonly #names: Record<FieldName, string>
  readonly #ignoreUnknown: boolean
  readonly #findFaults = makePlantCheck()
  #header: Header | undefined

  constructor(form: Form) {
    const { map = {}, ignoreUnknown = Object.keys(map).length > 0 } = form
    this.#form = form
    this.#names = Object.fromEntries(fieldNames.map((name) => [name, map[name] ?? name])) as Record<
      FieldName,
      string
    >
    this.#ignoreUnknown = ignoreUnknown
  }

  /** Undefined for an empty line, for the header row, and for all others with `isHeaderOnly`. Throws InputError. */
  read(record: InputRecord, isHeaderOnly: boolean): Read | undefined {
    const { text, cells = [], line, fault, eol } = record
    const isHeader = this.#form.format === 'csv' && !this.#header
    if ((text === '' && eol !== undefined) || (isHeaderOnly && !isHeader)) return undefined
    const isAscii = !/[\x80-\xff]/.test(text)
    if (!isAscii && !fault && !isUtf8(Buffer.from(text, 'latin1'))) throw new InputError(notUtf8, line)
    const decode = (latin1: string) => (isAscii ? latin1 : Buffer.from(latin1, 'latin1').toString())
    if (isHeader) return this.#readHeader(record, cells.map(decode))
    if (fault) return { faults: [fault] }
    const { width } = this.#header ?? { width: 0 }
    const isAgain = (cell: string, index: number) =>
      cell === this.#header?.cells[index] || (index === 0 && cell === byteOrderMark + this.#header?.cells[0])
    if (cells.length > 0 && cells.length === this.#header?.cells.length && cells.every(isAgain))
      return refuse('is the header row again')
    if (text.startsWith(byteOrderMark))
      return refuse('begins with a byte order mark (U+FEFF): two files were joined')
    if (cells.slice(width).some((cell) => cell !== ''))
      return refuse(`has ${cells.length} cells, but the header row has ${width}`)
    const read = this.#header ? this.#readRow(cells, this.#header, decode) : this.#readJson(decode(text))
    if (eol !== '' || (read.plant && cells.length >= width)) return read
    const reason = read.faults ? describeFaults(read.faults) : `has ${cells.length} of ${width} cells`
    return refuse(`is cut short: it has no end of line, and ${reason}`)
  }

  #readJson(text: string): Read {
    let value: Members
    try {
      value = JSON.parse(text)
    } catch {
      return refuse(text.trim() === '' ? 'is empty, expected JSON' : 'is not JSON')
    }
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    if (!isObject || (!this.#form.trim && !this.#ignoreUnknown)) return this.#check(value)
    const plant: Members = this.#ignoreUnknown ? {} : { ...value }
    for (const field of fieldNames.filter((name) => Object.hasOwn(value, this.#names[name]))) {
      const member = value[this.#names[field]]
      plant[field] = this.#form.trim && typeof member === 'string' ? member.trim() : member
    }
    return this.#check(plant)
  }

  #readRow(cells: string[], { columns }: Header, decode: (latin1: string) => string): Read {
    const plant: Members = {}
    for (const field of fieldNames) {
      const cell = decode(cells[columns[field]] ?? '')
      const text = this.#form.trim ? cell.trim() : cell
      // An empty cell of an optional field means no value.
      if (text === '' && !required.has(field)) continue
      const { form, read } = cellForms[(NewPlant.properties[field] as TSchema).type] ?? {}
      plant[field] = form?.test(text) ? read?.(text) : text
    }
    return this.#check(plant)
  }

  #check(plant: unknown): Read {
    const faults = this.#findFaults(plant)
    return faults.length === 0
      ? { plant: plant as NewPlant }
      : { faults: faults.map((fault) => this.locate(fault)) }
  }

  /** Points a fault at the member or column of the input. */
  locate<T extends { pointer?: string }>(fault: T): T {
    const field = fieldNames.find((name) => fault.pointer === `/${name}`)
    if (field === undefined) return fault
    return { ...fault, pointer: `/${this.#names[field].replaceAll('~', '~0').replaceAll('/', '~1')}` }
  }

  /** Columns that are not used may have no name, or the same one. */
  #readHeader({ text, line, fault, eol, cells = [] }: InputRecord, decoded: string[]): undefined {
    const refuse = (reason: string) => new InputError(reason, line)
    if (fault) throw refuse(`the header row: ${fault.detail}`)
    this.headerText += text + (eol || '\n')
    if (/^sep=.$/i.test(text)) return
    const all = this.#form.trim ? decoded.map((cell) => cell.trim()) : decoded
    const columns = {} as Header['columns']
    for (const field of fieldNames) {
      const name = this.#names[field]
      columns[field] = all.indexOf(name)
      if (columns[field] === -1 && (required.has(field) || name !== field))
        throw refuse(
          `no column "${name}" for the ${field}; use --map ${field}=COLUMN with one of: ${list(all)}`,
        )
      if (all.lastIndexOf(name) !== columns[field]) throw refuse(`duplicate column "${name}"`)
    }
    const unknown = all.filter((column) => column !== '' && !Object.values(this.#names).includes(column))
    if (unknown.length > 0 && !this.#ignoreUnknown)
      throw refuse(`unknown columns: ${list(unknown)}; --ignore-unknown ignores them`)
    this.#header = { cells, columns, width: all.findLastIndex((column) => column !== '') + 1 }
  }
}

const refuse = (detail: string): Read => ({ faults: [faultOf(detail)] })

/** Lists the first columns, of each its first characters. */
function list(columns: string[]): string {
  const shown = columns.slice(0, 20).map((column) => JSON.stringify(column.slice(0, 40)))
  return shown.join(', ') + (columns.length > 20 ? ', …' : '')
}

/** Describes the faults of a record in one line. */
export function describeFaults(faults: Pick<Fault, 'pointer' | 'detail'>[]): string {
  return faults.map(({ pointer = '', detail }) => `${pointer.slice(1)} ${detail}`.trim()).join('; ')
}
