// The forms that an export can have, and how the name of a file tells them.
import { extname } from 'node:path'
import { stringify } from 'csv-stringify/sync'
import type { Plant } from '../../schemas/plant.ts'

/** How a form is put together from pages of plants, each a JSON object with its `id`, if any, as the last member. */
export type Format = {
  start: string
  /** What stands between two plants of a page. */
  separator: string
  /** A page, which holds one plant at least, as it stands in the file. */
  write(page: Buffer, isFirst: boolean): (Buffer | string)[]
  end: string
}

export type FormatName = 'ndjson' | 'json' | 'csv'
export type FormatOptions = { withId: boolean }

export const formats: Record<FormatName, (options: FormatOptions) => Format> = {
  ndjson: () => ({ start: '', separator: '\n', write: (page) => [page, '\n'], end: '' }),
  json: () => ({
    start: '[',
    separator: ',\n',
    write: (page, isFirst) => [isFirst ? '\n' : ',\n', page],
    end: '\n]\n',
  }),
  csv: ({ withId }) => {
    const columns = withId ? ['name', 'tag', 'id'] : ['name', 'tag']
    return {
      start: `${columns}\n`,
      separator: ',',
      write: (page) => [stringify(JSON.parse(`[${page}]`) as Plant[], { columns })],
      end: '',
    }
  },
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

/** What the name of a file says of its content; of `plants.csv.gz`, that it is CSV in gzip. */
export function readName(path: string): {
  format: FormatName | undefined
  compression: CompressionName | undefined
} {
  const compression = compressionEndings[extname(path).toLowerCase()]
  const inner = compression ? path.slice(0, -extname(path).length) : path
  return { format: formatEndings[extname(inner).toLowerCase()], compression }
}
