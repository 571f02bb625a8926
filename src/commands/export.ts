// export: writes the plants of the log into a file, or to stdout, page by page from the JSON text in the log.
import { createWriteStream } from 'node:fs'
import { extname } from 'node:path'
import { Readable } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { setImmediate as turn } from 'node:timers/promises'
import { constants, createGzip, createZstdCompress } from 'node:zlib'
import { type Command, Option } from 'commander'
import { CommandError, count, reportFile, silent } from '../cli/console.ts'
import { doLongWork } from '../cli/long-work.ts'
import { writeNewFile } from '../cli/new-file.ts'
import { addWorkOptions, findDatabase, nameDatabase, type WorkOptions, wholeNumber } from '../cli/options.ts'
import type { Store } from '../store/engine.ts'
import { engineOf, withStore } from '../store/engines.ts'
import { command as program } from '../version.ts'

type Form = { format: 'ndjson' | 'json' | 'csv'; compress: 'gzip' | 'zstd' | 'none' }
type Options = WorkOptions & Partial<Form> & { after: number; id: boolean; bom?: true; force?: true }

/** What is exported: the plants after a position up to the head, on which the caller decides once. */
type Content = Form & { after: number; head: number; withId: boolean; bom: boolean }

const help = `
The ending of FILE selects the format: .ndjson or .jsonl, .json or .csv, followed by .gz or .zst for compression. Without
FILE, or with -, plants go to stdout as NDJSON, and the summary to stderr. Spreadsheets need --bom to read CSV as UTF-8.

An export holds the log as it is when it begins; a service may add plants meanwhile. FILE gets its name when it is
complete; an export that is killed may leave a file that ends in .partial, which may be deleted. The summary has the last
position of the log: --after with that number exports what was added since.`

const formats = { '.ndjson': 'ndjson', '.jsonl': 'ndjson', '.json': 'json', '.csv': 'csv' } as const
const codings = { '.gz': 'gzip', '.zst': 'zstd' } as const
const compressors = {
  gzip: () => [createGzip()],
  // zstd has no checksum by default.
  zstd: () => [createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } })],
  none: () => [],
}
const pagePlants = 1000

export function define(command: Command): void {
  command
    .argument('[file]', 'the file; - is stdout', '-')
    .addOption(
      new Option('--format <format>', 'format, instead of that of the file name').choices([
        'ndjson',
        'json',
        'csv',
      ]),
    )
    .addOption(
      new Option('--compress <coding>', 'compression, instead of that of the file name').choices(
        Object.keys(compressors),
      ),
    )
    .option('--after <position>', 'only the plants after this position', wholeNumber(0), 0)
    .option('--no-id', 'without the ids')
    .option('--bom', 'begin CSV with a byte order mark')
    .option('--force', 'replace FILE if it exists')
  addWorkOptions(command).addHelpText('after', help).action(runExport)
}

async function runExport(file: string, options: Options, command: Command): Promise<void> {
  const { after, id: withId, bom = false, force: replace } = options
  const form = chooseForm(file, options, command)
  const isStdout = file === '-'
  const url = findDatabase(options)
  const describe = () => 'interrupted: the export is incomplete. Run it again'
  const quiet = options.quiet || isStdout
  const head = await doLongWork({ quiet, describe }, (progress, signal) =>
    withStore(url, { mode: 'read', logger: silent }, async (store) => {
      const { position: head } = await store.log.head()
      if (after > head) throw new CommandError(`the log ends at plant ${head}: there is no plant ${after}`)
      const show = (done: number) => progress.show(done, head - after)
      const pages = writePages(store, { ...form, after, head, withId, bom }, show)
      const stages = [Readable.from(pages), ...compressors[form.compress]()]
      const write = (to: NodeJS.WritableStream, end: boolean) => pipeline([...stages, to], { signal, end })
      const writing = isStdout
        ? write(process.stdout, false)
        : writeNewFile(file, { replace, signal, source: engineOf(url).path?.(url) }, (path) =>
            write(createWriteStream(path, { flags: 'wx' }), true),
          )
      // If writing fails, a page is still being read.
      await writing.finally(() => pages.return())
      return head
    }),
  )
  const database = nameDatabase(url)
  const compression = form.compress === 'none' ? null : form.compress
  const summary = { plants: head - after, after, head, database, file, format: form.format, compression }
  const text = `exported ${count(head - after, 'plant')} from ${database}${isStdout ? '' : ` to ${file}`}`
  await reportFile(file, summary, options, `${text}; the log ends at plant ${head}`)
}

/** Reads the form from the name of the file, like `plants.csv.gz`; options override it. Exits with 2 for other endings. */
function chooseForm(file: string, { format, compress, bom }: Options, command: Command): Form {
  const ending = extname(file).toLowerCase()
  const coding = codings[ending as keyof typeof codings]
  const inner = coding ? extname(file.slice(0, -ending.length)).toLowerCase() : ending
  const named = formats[inner as keyof typeof formats]
  const form = { format: format ?? named ?? 'ndjson', compress: compress ?? coding ?? 'none' }
  if (format === undefined && named === undefined && inner !== '')
    command.error(
      `error: unknown ending ${inner} of FILE: expected ${Object.keys(formats).join(', ')}, followed by ` +
        `${Object.keys(codings).join(' or ')} or nothing; --format sets the format of other names`,
      { exitCode: 2 },
    )
  if (bom && form.format !== 'csv') command.error('error: --bom is for CSV', { exitCode: 2 })
  return form
}

async function* writePages(store: Store, content: Content, show: (done: number) => void) {
  const { after, head, withId } = content
  const { start, separator, write, end } = await makeFormat(content)
  yield start
  for (let position = after; position < head; ) {
    // Reading SQLite and writing to a file never yield: let signals be handled.
    await turn()
    const last = Math.min(position + pagePlants, head)
    const { count, text } = await store.join({ after: position, last }, separator, withId)
    try {
      if (count !== last - position) throw new Error('a plant is missing')
      yield* write(text, position === after)
    } catch (cause) {
      const message = `plants ${position + 1} to ${last} are damaged; ${program} verify reports the faults`
      throw new CommandError(message, { cause })
    }
    position = last
    show(position - after)
  }
  yield end
}

/** How pages of plants are written, each a JSON object; `write` throws when one that has to be parsed is damaged. */
async function makeFormat({ format, withId, bom }: Content) {
  type Write = (page: Buffer, isFirst: boolean) => (Buffer | string)[]
  const ndjson: Write = (page) => [page, '\n']
  const json: Write = (page, isFirst) => [isFirst ? '\n' : ',\n', page]
  if (format === 'ndjson') return { start: '', separator: '\n', write: ndjson, end: '' }
  if (format === 'json') return { start: '[', separator: ',\n', write: json, end: '\n]\n' }
  // Loaded on demand: the schemas take a third of the time of a small export.
  const { NewPlant, Plant } = await import('../../schemas/plant.ts')
  const columns = Object.keys((withId ? NewPlant : Plant).properties)
  const csv: Write = (page) => {
    const plants: Record<string, unknown>[] = JSON.parse(`[${page}]`)
    return [plants.map((plant) => writeCells(columns.map((column) => String(plant[column] ?? '')))).join('')]
  }
  return { start: `${bom ? '\ufeff' : ''}${writeCells(columns)}`, separator: ',', write: csv, end: '' }
}

/** Writes a row of CSV (RFC 4180). */
function writeCells(cells: string[]): string {
  const quote = (cell: string) => (/[",\r\n]/.test(cell) ? `"${cell.replaceAll('"', '""')}"` : cell)
  return `${cells.map(quote)}\n`
}
