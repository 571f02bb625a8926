// export: writes the plants of the log to a file or to stdout, page by page.
import { Readable } from 'node:stream'
import { setImmediate as turn } from 'node:timers/promises'
import { constants, createGzip, createZstdCompress } from 'node:zlib'
import { type Command, Option } from 'commander'
import { NewPlant, Plant } from '../../schemas/plant.ts'
import { CommandError, count, doLongWork, reportFile } from '../cli/console.ts'
import { writeStreams } from '../cli/new-file.ts'
import { addWorkOptions, findDatabase, type WorkOptions, wholeNumber } from '../cli/options.ts'
import { isDamaged, type Store, type StoredPlant } from '../store/engine.ts'
import { engineOf, nameDatabase, withStore } from '../store/engines.ts'
import { commandName } from '../version.ts'

const formats = { '.ndjson': 'ndjson', '.jsonl': 'ndjson', '.json': 'json', '.csv': 'csv' } as const
type Format = (typeof formats)[keyof typeof formats]
type Options = WorkOptions & { format?: Format; after: number; id: boolean; bom?: true; force?: true }
/** `head`: the position of the last plant, which is read once. */
type Content = Options & { format: Format; head: number }

const help = `
The ending of FILE selects the format: .ndjson or .jsonl, .json or .csv, followed by .gz or .zst for compression. Without
FILE, or with -, NDJSON goes to stdout, and the summary to stderr. Excel needs --bom to read CSV as UTF-8.

An export is a snapshot of the log at its start; a service may be running. FILE appears once it is complete; a killed export
may leave a file that ends in .partial: delete it. The summary has the last position of the log, for the next --after.`

const compressors = {
  '.gz': () => [createGzip()],
  // zstd has no checksum by default.
  '.zst': () => [createZstdCompress({ params: { [constants.ZSTD_c_checksumFlag]: 1 } })],
  '': () => [],
}
const pagePlants = 1000
const advice = 'interrupted: the export is incomplete. Run the command again'

export function define(command: Command): void {
  const choices = [...new Set(Object.values(formats))]
  command
    .argument('[file]', 'the file to create; - is stdout', '-')
    .addOption(new Option('--format <format>', 'format; overrides the ending of FILE').choices(choices))
    .option('--after <position>', 'export only the plants after this position', wholeNumber(0), 0)
    .option('--no-id', 'omit the ids')
    .option('--bom', 'start CSV with a byte order mark')
    .option('--force', 'replace FILE if it exists')
  addWorkOptions(command).addHelpText('after', help).action(runExport)
}

async function runExport(file: string, options: Options, command: Command): Promise<void> {
  const { format, compress } = chooseForm(file, options, command)
  const url = findDatabase(options)
  const isStdout = file === '-'
  const { after } = options
  const head = await doLongWork({ quiet: options.quiet || isStdout, advice }, (progress, signal) =>
    withStore(url, { mode: 'read' }, async (store) => {
      const { position: head } = await store.log.head()
      if (after > head) throw new CommandError(`the log ends at plant ${head}, before plant ${after}`)
      const show = (done: number) => progress.show(done, head - after)
      const pages = writePages(store, { ...options, format, head }, show)
      const target = { replace: options.force, signal, source: engineOf(url).path?.(url) }
      // After a write error, waits for the page that is being read.
      await writeStreams(file, target, [Readable.from(pages), ...compress()]).finally(() => pages.return())
      return head
    }),
  )
  const [plants, database] = [head - after, nameDatabase(url)]
  const done = `exported ${count(plants, 'plant')} from ${database}${isStdout ? '' : ` to ${file}`}`
  const summary = { plants, after, head, database, file, format }
  await reportFile(file, summary, `${done}; the log ends at plant ${head}`, options)
}

/** Derives format and compression from the file name, such as `plants.csv.gz`. Exits with 2 for other endings. */
function chooseForm(file: string, options: Options, command: Command) {
  // Two endings, such as .csv and .gz. The first is neither .gz nor .zst.
  const [, inner = '', ending = ''] = /(\.(?!gz$|zst$)[^./\\]*)?(\.gz|\.zst)?$/.exec(file.toLowerCase()) ?? []
  const compress = compressors[ending as keyof typeof compressors]
  const format = options.format ?? (inner === '' ? 'ndjson' : formats[inner as keyof typeof formats])
  const refuse = (reason: string) => command.error(`error: ${reason}`, { exitCode: 2 })
  const endings = Object.keys(formats).join(', ')
  if (format === undefined)
    return refuse(`unknown ending ${inner} of FILE: use ${endings}, or --format; .gz or .zst may follow`)
  return options.bom && format !== 'csv' ? refuse('--bom is for CSV') : { format, compress }
}

async function* writePages(store: Store, content: Content, show: (done: number) => void) {
  const { format, after, head, id: withId, bom } = content
  const columns = Object.keys((withId ? NewPlant : Plant).properties)
  if (format === 'json') yield '['
  if (format === 'csv') yield `${bom ? '\ufeff' : ''}${columns}\n`
  for (let position = after; position < head; ) {
    // Yields to the event loop, which handles signals: SQLite reads and file writes do not.
    await turn()
    const last = Math.min(position + pagePlants, head)
    const plants = await store.plants(position, last, pagePlants)
    if (plants.length !== last - position || plants.some(isDamaged))
      throw new CommandError(`plants ${position + 1} to ${last} are damaged: see ${commandName} verify`)
    // An item ends with a brace.
    const addId = ({ item, id }: StoredPlant) => (id === null ? item : `${item.slice(0, -1)},"id":${id}}`)
    const items = plants.map((plant) => (withId ? addId(plant) : plant.item))
    if (format === 'json') yield (position === after ? '\n' : ',\n') + items.join(',\n')
    else yield format === 'csv' ? toRows(items, columns) : `${items.join('\n')}\n`
    position = last
    show(position - after)
  }
  if (format === 'json') yield '\n]\n'
}

/** Formats items as rows of CSV (RFC 4180). */
function toRows(items: string[], columns: string[]): string {
  // An unquoted U+FEFF could be mistaken for the byte order mark of another file.
  const quote = (one: string) => (/^sep=|[",\r\n\ufeff]/i.test(one) ? `"${one.replaceAll('"', '""')}"` : one)
  const toRow = (plant: Record<string, unknown>) =>
    `${columns.map((column) => quote(String(plant[column] ?? ''))).join(',')}\n`
  return JSON.parse(`[${items}]`).map(toRow).join('')
}
