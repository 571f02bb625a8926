// Reads records as plants: maps members or columns to fields, and checks each plant by the schema of the add operation.
import { isUtf8 } from 'node:buffer'
import type { TSchema } from '@sinclair/typebox'
import { NewPlant } from '../../../schemas/plant.ts'
import { makePlantCheck } from '../../plants/plant-faults.ts'
import type { Form } from './form.ts'
import { byteOrderMark, InputError } from './input.ts'
import type { InputRecord } from './records.ts'

type FieldName = keyof NewPlant
export const fieldNames = Object.keys(NewPlant.properties) as FieldName[]
export const required: ReadonlySet<string> = new Set(NewPlant.required)

/** What is to be checked, a fault, or undefined for the header row. */
type Read = { value: unknown } | string | undefined
type Decode = (latin1: string) => string

/** How a cell is read, by the type of its field. Spreadsheets write TRUE, and pandas 7.0. */
const cellForms: Record<string, [form: RegExp, read: (cell: string) => unknown]> = {
  integer: [/^-?(0|[1-9]\d*)(\.0+)?$/, Number],
  number: [/^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/, Number],
  boolean: [/^(true|false)$/i, (cell) => cell.toLowerCase() === 'true'],
}

/** Makes a function that returns a plant, a fault, or undefined for the header row. It throws InputError. */
export function makePlantReader(form: Form) {
  const read = form.format === 'csv' ? makeRowReader(form) : makeMemberReader(form)
  const findFaults = makePlantCheck()
  return (record: InputRecord): NewPlant | string | undefined => {
    const { line, text } = record
    const isAscii = !/[\x80-\xff]/.test(text)
    if (!isAscii && !isUtf8(Buffer.from(text, 'latin1')))
      throw new InputError(
        `line ${line}: is not UTF-8; Excel saves CSV in Windows-1252, which this converts: ` +
          'iconv -f windows-1252 -t utf-8 FILE',
      )
    if (text.startsWith(byteOrderMark)) return 'begins with a byte order mark (U+FEFF): two files were joined'
    const found = read(record, isAscii ? String : decodeUtf8)
    if (typeof found !== 'object') return found
    const faults = findFaults(found.value)
    if (faults.length === 0) return found.value as NewPlant
    return faults.map(({ pointer = '', detail }) => `${pointer.slice(1)} ${detail}`.trim()).join('; ')
  }
}

function decodeUtf8(latin1: string): string {
  return Buffer.from(latin1, 'latin1').toString()
}

function makeMemberReader({ map, ignoreUnknown }: Form) {
  return ({ text }: InputRecord, decode: Decode): Read => {
    let value: Record<string, unknown>
    try {
      value = JSON.parse(decode(text))
    } catch {
      return 'is not JSON'
    }
    if (!ignoreUnknown || value === null) return { value }
    const plant: Record<string, unknown> = {}
    for (const field of fieldNames) {
      const name = map[field] ?? field
      if (Object.hasOwn(value, name)) plant[field] = value[name]
    }
    return { value: plant }
  }
}

function makeRowReader(form: Form) {
  let header: ReturnType<typeof readHeader> | undefined
  return (record: InputRecord, decode: Decode): Read => {
    const { text, cells, fault } = record
    if (header === undefined) {
      if (!/^sep=.\r?\n$/i.test(text)) header = readHeader(record, decode, form)
      return undefined
    }
    if (fault !== undefined) return fault
    if (text.trimEnd() === header.text) return 'is the header row again'
    if (cells.length > header.width && cells.slice(header.width).some((cell) => cell !== ''))
      return `has ${cells.length} cells, but the header row has ${header.width}`
    const plant: Record<string, unknown> = {}
    for (const [field, column] of header.columns) {
      const whole = decode(cells[column] ?? '')
      const cell = form.trim ? whole.trim() : whole
      // An empty cell of an optional field means no value.
      if (cell === '' && !required.has(field)) continue
      const [pattern, parse] = cellForms[(NewPlant.properties[field] as TSchema).type] ?? []
      plant[field] = pattern?.test(cell) ? parse?.(cell) : cell
    }
    return { value: plant }
  }
}

/**
 * Finds the column of each field, and the number of columns without empty ones at the end. Columns that are not used may
 * have no name, or the same one.
 */
function readHeader({ line, text, cells, fault }: InputRecord, decode: Decode, form: Form) {
  const refuse = (reason: string) => new InputError(`line ${line}: ${reason}`)
  if (fault !== undefined) throw refuse(`the header row: ${fault}`)
  const all = cells.map((cell) => (form.trim ? decode(cell).trim() : decode(cell)))
  const list = (names: string[]) =>
    names
      .map((name) => `"${name}"`)
      .join(', ')
      .slice(0, 500)
  const columns: [field: FieldName, column: number][] = []
  for (const field of fieldNames) {
    const name = form.map[field] ?? field
    const column = all.indexOf(name)
    if (column === -1 && (required.has(field) || name !== field))
      throw refuse(
        `no column "${name}" for the ${field}; use --map ${field}=COLUMN with one of: ${list(all)}`,
      )
    if (all.lastIndexOf(name) !== column) throw refuse(`duplicate column "${name}"`)
    columns.push([field, column])
  }
  const used = columns.map(([, column]) => column)
  const unknown = all.filter((name, column) => name !== '' && !used.includes(column))
  if (unknown.length > 0 && !form.ignoreUnknown)
    throw refuse(`unknown columns: ${list(unknown)}; --ignore-unknown ignores them`)
  return { text: text.trimEnd(), columns, width: all.findLastIndex((name) => name !== '') + 1 }
}
