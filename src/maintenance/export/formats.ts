// The formats of an export, and the file names that select them.
import { extname } from 'node:path'
import { constants, createGzip, createZstdCompress } from 'node:zlib'

/** Formats pages of plants, each a JSON object with its `id`, if any, as the last member. */
export type Format = {
  start: string
  /** Stands between two plants of a page. */
  separator: string
  /** Formats a page of at least one plant. Throws a SyntaxError when one that has to be parsed is damaged. */
  write(page: Buffer, isFirst: boolean): (Buffer | string)[]
  end: string
}

type Exported = Record<string, string | number | boolean | undefined>

export type FormatName = 'ndjson' | 'json' | 'csv'

export const formats: Record<FormatName, (withId: boolean) => Format | Promise<Format>> = {
  ndjson: () => ({ start: '', separator: '\n', write: (page) => [page, '\n'], end: '' }),
  json: () => ({
    start: '[',
    separator: ',\n',
    write: (page, isFirst) => [isFirst ? '\n' : ',\n', page],
    end: '\n]\n',
  }),
  csv: async (withId) => {
    // Loaded on demand: the schemas take a third of the time of a small export, and other formats need none.
    const { NewPlant, Plant } = await import('../../../schemas/plant.ts')
    const columns = Object.keys((withId ? NewPlant : Plant).properties)
    const writeRow = (plant: Exported) => writeCells(columns.map((column) => String(plant[column] ?? '')))
    return {
      start: writeCells(columns),
      separator: ',',
      write: (page) => [(JSON.parse(`[${page}]`) as Exported[]).map(writeRow).join('')],
      end: '',
    }
  },
}

function writeCells(cells: string[]): string {
  return `${cells.map(quoteCell)}\n`
}

/** Quotes a cell of a CSV file if necessary (RFC 4180). */
export function quoteCell(cell: string): string {
  return /[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell
}

export const formatNames = Object.keys(formats) as FormatName[]

/** zstd has no checksum by default. */
const zstdOptions = { params: { [constants.ZSTD_c_checksumFlag]: 1 } }
export const compressors = { gzip: createGzip, zstd: () => createZstdCompress(zstdOptions) }

export type CompressionName = keyof typeof compressors
export const compressionNames = Object.keys(compressors) as CompressionName[]

const formatEndings: Record<string, FormatName> = {
  '.ndjson': 'ndjson',
  '.jsonl': 'ndjson',
  '.json': 'json',
  '.csv': 'csv',
}
const compressionEndings: Record<string, CompressionName> = { '.gz': 'gzip', '.zst': 'zstd' }
/** The known endings in words. */
export const endings = `${Object.keys(formatEndings).join(', ')}, with ${Object.keys(compressionEndings).join(' or ')} behind it`

/**
 * Reads format and compression from the name of a file, like `plants.csv.gz`. `unknown`: an ending that is not known.
 */
export function readName(path: string) {
  const compression = compressionEndings[extname(path).toLowerCase()]
  const inner = compression ? path.slice(0, -extname(path).length) : path
  const ending = extname(inner)
  const format = formatEndings[ending.toLowerCase()]
  return { format, compression, unknown: format || ending === '' ? undefined : ending }
}
