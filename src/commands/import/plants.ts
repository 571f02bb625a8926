// Reads records as plants: maps members or columns to fields, and checks each plant by the schema of the add operation.
import { isUtf8 } from 'node:buffer'
import type { TSchema } from '@sinclair/typebox'
import { NewPlant } from '../../../schemas/plant.ts'
import type { Fault } from '../../../schemas/problem.ts'
import { makePlantCheck } from '../../plants/plant-faults.ts'
import { type Form, notUtf8 } from './form.ts'
import { faultOf, InputError, type InputRecord, maxRecordBytes, tooLong } from './records.ts'

export type FieldName = keyof NewPlant
export const fieldNames = Object.keys(NewPlant.properties) as FieldName[]
export const required: ReadonlySet<string> = new Set(NewPlant.required)

/** `map`: names of members or columns that are not those of their fields; mapping one implies `ignoreUnknown`. */
export type FieldOptions = { map?: Partial<Record<FieldName, string>>; ignoreUnknown?: boolean }

type Read = { plant: NewPlant } | { faults: Fault[] }

const byteOrderMark = '\xef\xbb\xbf'
/** How a cell is read, by the type of its field. Spreadsheets write TRUE, and pandas 7.0. */
const cellForms: Record<string, { form: RegExp; read: (cell: string) => unknown }> = {
  integer: { form: /^-?(0|[1-9]\d*)(\.0+)?$/, read: Number },
  number: { form: /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/, read: Number },
  boolean: { form: /^(true|false)$/i, read: (cell) => cell.toLowerCase() === 'true' },
}

export class PlantReader {
  /** The header row of CSV with its end of line, and a line like `sep=;` before it. */
  header = ''
  readonly #form: Form
  readonly #names: Record<FieldName, string>
  readonly #ignoreUnknown: boolean
  readonly #findFaults = makePlantCheck()
  #headerRow: string[] | undefined
  /** Columns of the header row, without empty ones at its end. */
  #width = 0
  readonly #columns = {} as Record<FieldName, number>

  constructor(form: Form, { map = {}, ignoreUnknown = false }: FieldOptions) {
    this.#form = form
    const own = Object.fromEntries(fieldNames.map((name) => [name, name])) as Record<FieldName, string>
    this.#names = { ...own, ...map }
    this.#ignoreUnknown = ignoreUnknown || Object.keys(map).length > 0
  }

  /** True once the header row of CSV is read. */
  get isReady(): boolean {
    return this.#form.format !== 'csv' || this.#headerRow !== undefined
  }

  /** Undefined for a record that is no plant: an empty line, or the header row. Throws InputError if that does not fit. */
  read(record: InputRecord): Read | undefined {
    const { text, line, fault, eol } = record
    if (text === '' && !fault) return undefined
    const isAscii = !/[\x80-\xff]/.test(text)
    if (!isAscii && !fault && !isUtf8(Buffer.from(text, 'latin1'))) throw new InputError(notUtf8, line)
    if (!this.isReady) return this.#readHeader(record)
    if (fault) return { faults: [fault] }
    if (text.startsWith(byteOrderMark) && !this.#isHeader(record.cells, byteOrderMark))
      return refuse('begins with a byte order mark (U+FEFF), as where two files were joined')
    const read = record.cells ? this.#readRow(record.cells, isAscii) : this.#readJson(decode(text, isAscii))
    if (eol !== '') return read
    if ('faults' in read)
      return refuse(`is cut short: it has no end of line, and ${describeFaults(read.faults)}`)
    if ((record.cells?.length ?? this.#width) >= this.#width) return read
    return refuse('is cut short: it has no end of line, and fewer cells than the header row')
  }

  #readJson(text: string): Read {
    let value: unknown
    try {
      value = JSON.parse(text)
    } catch {
      return refuse(text.trim() === '' ? 'is empty, expected JSON' : 'is not JSON')
    }
    const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
    return this.#check(isObject ? this.#takeMembers(value as Record<string, unknown>) : value)
  }

  #takeMembers(value: Record<string, unknown>): Record<string, unknown> {
    if (!this.#form.trim && !this.#ignoreUnknown) return value
    const plant = this.#ignoreUnknown ? {} : { ...value }
    for (const field of fieldNames.filter((name) => Object.hasOwn(value, this.#names[name]))) {
      const member = value[this.#names[field]]
      plant[field] = this.#form.trim && typeof member === 'string' ? member.trim() : member
    }
    return plant
  }

  #readRow(cells: string[], isAscii: boolean): Read {
    if (this.#isHeader(cells, byteOrderMark) || this.#isHeader(cells))
      return refuse('is the header row again')
    if (cells.length > this.#width && cells.slice(this.#width).some((cell) => cell !== ''))
      return refuse(`has ${cells.length} cells, but the header row has ${this.#width}`)
    const plant: Record<string, unknown> = {}
    for (const field of fieldNames) {
      const cell = decode(cells[this.#columns[field]] ?? '', isAscii)
      const text = this.#form.trim ? cell.trim() : cell
      // An empty cell of an optional field means no value.
      if (text === '' && !required.has(field)) continue
      const { form, read } = cellForms[(NewPlant.properties[field] as TSchema).type] ?? {}
      plant[field] = form?.test(text) ? read?.(text) : text
    }
    return this.#check(plant)
  }

  #isHeader(cells: string[] | undefined, before = ''): boolean {
    const header = this.#headerRow
    if (header === undefined || cells?.length !== header.length || cells[0] !== before + header[0])
      return false
    return header.every((column, index) => index === 0 || column === cells[index])
  }

  #check(plant: unknown): Read {
    const faults = this.#findFaults(plant)
    return faults.length === 0
      ? { plant: plant as NewPlant }
      : { faults: faults.map((one) => this.locate(one)) }
  }

  /** Points a fault at the member or column of the input. */
  locate<T extends { pointer?: string }>(fault: T): T {
    const field = fieldNames.find((name) => fault.pointer === `/${name}`)
    if (field === undefined) return fault
    return { ...fault, pointer: `/${this.#names[field].replaceAll('~', '~0').replaceAll('/', '~1')}` }
  }

  #readHeader({ text, line, fault, eol, cells = [] }: InputRecord): undefined {
    if (fault) throw new InputError(`the header row ${fault.detail}`, line)
    if (text.length > maxRecordBytes) throw new InputError(`the header row ${tooLong.detail}`, line)
    this.header += text + (eol || '\n')
    if (/^sep=.$/i.test(text)) return
    const trim = (cell: string) => (this.#form.trim ? cell.trim() : cell)
    const columns = cells.map((cell) => trim(decode(cell, false)))
    this.#findColumns(columns, line)
    this.#headerRow = cells
    this.#width = columns.findLastIndex((column) => column !== '') + 1
  }

  /** Columns that are not used may have no name, or the same one. */
  #findColumns(columns: string[], line: number): void {
    const names = Object.values(this.#names)
    for (const field of fieldNames) {
      const name = this.#names[field]
      const index = columns.indexOf(name)
      if (index === -1 && (required.has(field) || name !== field))
        throw new InputError(
          `no column ${JSON.stringify(name)} for the ${field}; use --map ${field}=COLUMN with one of: ${list(columns)}`,
          line,
        )
      if (columns.lastIndexOf(name) !== index)
        throw new InputError(`duplicate column ${JSON.stringify(name)}`, line)
      this.#columns[field] = index
    }
    const unknown = columns.filter((column) => column !== '' && !names.includes(column))
    if (unknown.length > 0 && !this.#ignoreUnknown)
      throw new InputError(`unknown columns: ${list(unknown)}; --ignore-unknown ignores them`, line)
  }
}

/** Text is kept as bytes, one per character, until it is used. */
function decode(text: string, isAscii: boolean): string {
  return isAscii ? text : Buffer.from(text, 'latin1').toString()
}

function refuse(detail: string): { faults: Fault[] } {
  return { faults: [faultOf(detail)] }
}

/** Lists the first columns, of each its first characters. */
function list(columns: string[]): string {
  const shown = columns.slice(0, 20).map((column) => JSON.stringify(column.slice(0, 40)))
  return shown.join(', ') + (columns.length > 20 ? ', …' : '')
}

/** Describes the faults of a record in one line. */
export function describeFaults(faults: Pick<Fault, 'pointer' | 'detail'>[]): string {
  return faults.map(({ pointer = '', detail }) => `${pointer.slice(1)} ${detail}`.trim()).join('; ')
}
