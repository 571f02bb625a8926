// Finds the fields of a plant in the input: members of JSON objects, or columns of CSV.
import type { TSchema } from '@sinclair/typebox'
import { NewPlant } from '../../../schemas/plant.ts'
import { InputError } from './record.ts'

export type FieldName = keyof NewPlant
export const fieldNames = Object.keys(NewPlant.properties) as FieldName[]
export const required: ReadonlySet<string> = new Set(NewPlant.required)
/** What a cell is, by the type of its field. Spreadsheets write TRUE. */
const forms: Record<string, { form: RegExp; read: (cell: string) => unknown }> = {
  integer: { form: /^-?(0|[1-9]\d*)$/, read: Number },
  number: { form: /^-?(0|[1-9]\d*)(\.\d+)?([eE][-+]?\d+)?$/, read: Number },
  boolean: { form: /^(true|false)$/i, read: (cell) => cell.toLowerCase() === 'true' },
}

/** Reads a cell by the type of its field. Anything else stays text, and is refused. */
export function readCell(field: FieldName, cell: string): unknown {
  const { type }: TSchema = NewPlant.properties[field]
  const { form, read } = forms[type] ?? {}
  return form?.test(cell) ? read?.(cell) : cell
}

/** Names of members or columns by field; `ignoreOthers`: others are left out instead of being faults. */
export type Fields = Record<FieldName, string> & { ignoreOthers: boolean }

/** Names of members or columns that are not those of their fields. */
export type FieldMap = Partial<Record<FieldName, string>>
export type FieldOptions = { map?: FieldMap; ignoreUnknown?: boolean }

/** Resolves the fields. Mapping one implies that other columns and members are ignored. */
export function resolveFields({ map = {}, ignoreUnknown = false }: FieldOptions): Fields {
  const ignoreOthers = ignoreUnknown || Object.keys(map).length > 0
  const own = Object.fromEntries(fieldNames.map((name) => [name, name])) as Record<FieldName, string>
  return { ...own, ...map, ignoreOthers }
}

/** Index of each field's column, or -1; `width`: the number of columns. */
export type Columns = Record<FieldName, number> & { width: number }

/** Finds the columns of the fields. Throws InputError when the header row does not fit them. */
export function findColumns(cells: string[], fields: Fields, line: number): Columns {
  // Spreadsheets have empty columns behind the last one.
  const header = cells.slice(0, cells.findLastIndex((cell) => cell !== '') + 1)
  const refuse = (reason: string) => new InputError(reason, line)
  const twice = header.find((column, index) => header.indexOf(column) !== index)
  if (twice !== undefined) throw refuse(`the column ${quote(twice)} is there twice`)
  const columns = { width: header.length } as Columns
  for (const field of fieldNames) {
    columns[field] = header.indexOf(fields[field])
    if (columns[field] === -1 && (required.has(field) || fields[field] !== field))
      throw refuse(
        `there is no column ${quote(fields[field])} for the ${field}; --map ${field}=COLUMN names one of: ${list(header)}`,
      )
  }
  const unknown = header.filter((column) => !Object.values(fields).includes(column))
  if (unknown.length > 0 && !fields.ignoreOthers)
    throw refuse(`a plant has no field for: ${list(unknown)}; --ignore-unknown leaves them out`)
  return columns
}

/** Lists the first columns, of each its first characters. */
function list(columns: string[]): string {
  return columns.slice(0, 20).map(quote).join(', ') + (columns.length > 20 ? ', …' : '')
}

function quote(column: string): string {
  return JSON.stringify(column.slice(0, 40))
}
