// The forms that an export can have, and how the name of a file tells them.
import { extname } from 'node:path'

/** Builds a form from pages of plants, each a JSON object with its `id`, if any, as the last member. */
export type Format = {
  start: string
  /** Stands between two plants of a page. */
  separator: string
  /** A page, which holds one plant at least, as it stands in the file. */
  write(page: Buffer, isFirst: boolean): (Buffer | string)[]
  end: string
}

type Exported = Record<string, string | number | undefined>

export type FormatName = 'ndjson' | 'json' | 'csv'
export type FormatOptions = { withId: boolean }

export const formats: Record<FormatName, (options: FormatOptions) => Format | Promise<Format>> = {
  ndjson: () => ({ start: '', separator: '\n', write: (page) => [page, '\n'], end: '' }),
  json: () => ({
    start: '[',
    separator: ',\n',
    write: (page, isFirst) => [isFirst ? '\n' : ',\n', page],
    end: '\n]\n',
  }),
  csv: async ({ withId }) => {
    // Loading the schemas takes a third of a small export, and the other forms need none.
    const { NewPlant, Plant } = await import('../../../schemas/plant.ts')
    const columns = Object.keys((withId ? NewPlant : Plant).properties)
    return {
      start: `${columns}\n`,
      separator: ',',
      write: (page) => [
        (JSON.parse(`[${page}]`) as Exported[]).map((plant) => writeRow(columns, plant)).join(''),
      ],
      end: '',
    }
  },
}

function writeRow(columns: string[], plant: Exported): string {
  return `${columns.map((column) => quoteCell(String(plant[column] ?? ''))).join(',')}\n`
}

/** A cell of a CSV file (RFC 4180). */
export function quoteCell(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell
}

export const formatNames = Object.keys(formats) as FormatName[]

export type CompressionName = 'gzip' | 'zstd'
export const compressionNames: CompressionName[] = ['gzip', 'zstd']

const formatEndings: Record<string, FormatName> = {
  '.ndjson': 'ndjson',
  '.jsonl': 'ndjson',
  '.json': 'json',
  '.csv': 'csv',
}
const compressionEndings: Record<string, CompressionName> = { '.gz': 'gzip', '.zst': 'zstd' }
/** In words. */
export const endings = `${Object.keys(formatEndings).join(', ')}, with ${Object.keys(compressionEndings).join(' or ')} behind it`

/** Reads the form from the name of a file; of `plants.csv.gz`, that it is CSV in gzip. `unknown`: an ending that says nothing. */
export function readName(path: string): {
  format: FormatName | undefined
  compression: CompressionName | undefined
  unknown: string | undefined
} {
  const compression = compressionEndings[extname(path).toLowerCase()]
  const inner = compression ? path.slice(0, -extname(path).length) : path
  const ending = extname(inner)
  const format = formatEndings[ending.toLowerCase()]
  return { format, compression, unknown: format || ending === '' ? undefined : ending }
}
