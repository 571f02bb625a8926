// Converts records to plants: maps members or columns to fields, and validates plants with the schema of the API.
import { isUtf8 } from 'node:buffer'
import { NewPlant } from '../../../schemas/plant.ts'
import { attempt } from '../../attempt.ts'
import { makePlantCheck } from '../../plants/faults.ts'
import { byteOrderMark, decode, endsInCr, type Form, InputError, isAscii } from './input.ts'
import type { InputRecord } from './records.ts'

/** The fields of a new plant, in the order of the schema. */
export const fieldNames = Object.keys(NewPlant.properties) as (keyof NewPlant)[]
export const required: ReadonlySet<string> = new Set(NewPlant.required)

/** A plant, a fault, or undefined for the header row. */
type Read = NewPlant | string | undefined
/** Returns a value as a plant, or its fault. */
type Check = (value: unknown) => NewPlant | string

/** The format of a cell, and its parser, by the type of the field. Spreadsheets write TRUE, and pandas writes 7.0. */
const cellForms: Record<string, [form: RegExp, read: (cell: string) => unknown]> = {
  integer: [/^-?(0|[1-9]\d*)(\.0+)?$/, Number],
  number: [/^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/, Number],
  boolean: [/^(true|false)$/i, (cell) => cell.toLowerCase() === 'true'],
}

/** Returns a function that reads the plant of a record. It throws InputError. */
export function makePlantReader(form: Form) {
  const findFault = makePlantCheck()
  const check = (value: unknown) => findFault(value) ?? (value as NewPlant)
  const read = form.format === 'csv' ? makeRowReader(form, check) : makeMemberReader(form, check)
  let { isUtf8: isKnownUtf8 } = form
  return (record: InputRecord): Read => {
    const { line, text } = record
    const isValid = isAscii(text) || isUtf8(Buffer.from(text, 'latin1'))
    // Not if other records are UTF-8: the conversion would garble them.
    if (!isValid && !isKnownUtf8)
      throw new InputError(
        `line ${line}: is not UTF-8; if Excel saved it in Windows-1252, convert it with: iconv -f windows-1252 -t utf-8 FILE`,
      )
    isKnownUtf8 ||= !isAscii(text)
    if (text.startsWith(byteOrderMark)) return 'starts with a byte order mark (U+FEFF): two files were joined'
    return read(isValid ? record : { ...record, fault: 'is not UTF-8' })
  }
}

function makeMemberReader({ nameOf, ignoreUnknown }: Form, check: Check) {
  return ({ text, fault }: InputRecord): Read => {
    if (fault !== undefined) return fault
    const value = attempt(() => JSON.parse(decode(text)))
    if (value === undefined) return 'is not JSON'
    if (!ignoreUnknown || value === null) return check(value)
    const known = fieldNames.filter((field) => Object.hasOwn(value, nameOf(field)))
    return check(Object.fromEntries(known.map((field) => [field, value[nameOf(field)]])))
  }
}

/** Matches a line that declares the separator for Excel. Alone, without a line break, it is a header row. */
const separatorLine = /^sep=.\r?\n?$/i

function makeRowReader(form: Form, check: Check) {
  let header: ReturnType<typeof readHeader> | undefined
  const readCell = (cell = '') => (form.trim ? decode(cell).trim() : decode(cell))
  return ({ line, text, cells = [], fault }: InputRecord): Read => {
    if (header === undefined) {
      if (/\r[^\r\n]/.test(text.replaceAll(/"[^"]*"/g, ''))) throw new InputError(endsInCr)
      if (fault !== undefined) throw new InputError(`line ${line}: the header row: ${fault}`)
      if (!separatorLine.test(text) || !text.endsWith('\n'))
        header = readHeader(line, cells.map(readCell), form)
      return undefined
    }
    if (fault !== undefined) return fault
    if (separatorLine.test(text)) return 'repeats the separator line: two files were joined'
    const { columns, width } = header
    if (columns.every(({ name, column }) => readCell(cells[column]) === name)) return 'repeats the header row'
    if (cells.slice(width).some((cell) => cell !== ''))
      return `has ${cells.length} cells, but the header row has ${width}`
    const plant: Record<string, unknown> = {}
    for (const { field, column } of columns) {
      const cell = readCell(cells[column])
      const [pattern, parse] = cellForms[NewPlant.properties[field].type] ?? []
      // An empty cell omits an optional field.
      if (cell !== '' || required.has(field)) plant[field] = pattern?.test(cell) ? parse?.(cell) : cell
    }
    return check(plant)
  }
}

/** Maps fields to columns. `width`: number of columns. Unused columns may have no name, or duplicate names. */
function readHeader(line: number, names: string[], { nameOf, ignoreUnknown }: Form) {
  const refuse = (reason: string) => new InputError(`line ${line}: ${reason}`)
  const list = (some: string[]) => JSON.stringify(some).slice(1, -1).slice(0, 500)
  const named = fieldNames.map((field) => ({ field, name: nameOf(field) }))
  const all = named.map((one) => ({ ...one, column: names.indexOf(one.name) }))
  for (const { field, name, column } of all) {
    if (column === -1 && (required.has(field) || name !== field))
      throw refuse(`no column "${name}" for ${field}; use --map ${field}=COLUMN with one of: ${list(names)}`)
    if (names.lastIndexOf(name) !== column) throw refuse(`duplicate column "${name}"`)
  }
  const columns = all.filter(({ column }) => column !== -1)
  const unknown = names.filter((name) => name !== '' && !columns.some((one) => one.name === name))
  if (unknown.length > 0 && !ignoreUnknown)
    throw refuse(`unknown columns: ${list(unknown)}; --ignore-unknown ignores them`)
  return { columns, width: names.length }
}
