// export: writes the plants of the log into a file, or to stdout.
import { type Command, Option } from 'commander'
import { loadDatabaseUrl } from '../../config/load-config.ts'
import { type ExportOptions, exportTo, exportToFile } from '../../maintenance/export/export-plants.ts'
import {
  type CompressionName,
  compressionNames,
  endings,
  type FormatName,
  formatNames,
  readName,
} from '../../maintenance/export/formats.ts'
import { count } from '../../runtime/count.ts'
import { engineOf, withView } from '../../store/engines.ts'
import { StoreRefused } from '../../store/errors.ts'
import { doLongWork } from '../console/long-work.ts'
import { openOutput } from '../console/output.ts'
import { nameDatabase } from '../database-name.ts'
import { addWorkOptions, type WorkOptions, wholeNumber } from '../setting-options.ts'

type Options = WorkOptions & {
  format?: FormatName
  compress?: CompressionName | 'none'
  after: number
  id: boolean
  force?: true
}

const help = `
The ending of FILE selects the format: .ndjson or .jsonl, .json or .csv, followed by .gz or .zst for compression. Without
FILE, or with -, plants go to stdout as NDJSON, and the summary to stderr.

An export holds the log as it is when it begins; a service may add plants meanwhile. FILE gets its name when it is
complete; an export that is killed may leave a file that ends in .partial, which may be deleted. The summary has the last
position of the log: --after with that number exports what was added since.`

const codings = [...compressionNames, 'none']

export function define(command: Command): void {
  command
    .argument('[file]', 'the file; - is stdout', '-')
    .addOption(
      new Option('--format <format>', 'format, instead of that of the file name').choices(formatNames),
    )
    .addOption(
      new Option('--compress <coding>', 'compression, instead of that of the file name').choices(codings),
    )
    .option(
      '--after <position>',
      'only the plants after this position',
      wholeNumber(0, Number.MAX_SAFE_INTEGER),
      0,
    )
    .option('--no-id', 'without the ids')
    .option('--force', 'replace FILE if it exists')
  addWorkOptions(command).addHelpText('after', help).action(runExport)
}

async function runExport(file: string, options: Options, command: Command): Promise<void> {
  const { after, force: replace } = options
  const databaseUrl = loadDatabaseUrl(options.databaseUrl)
  const form = chooseForm(file, options, command)
  const output = openOutput(file, options)
  const describe = () => 'interrupted: the export is incomplete. Run it again'
  const head = await withView(databaseUrl, async (view) => {
    const head = await view.head()
    if (after > head) throw new StoreRefused(`the log ends at plant ${head}: there is no plant ${after}`)
    await doLongWork({ quiet: output.quiet, describe }, (progress, signal) => {
      const onProgress = (done: number) => progress.show(done, head - after)
      const what: ExportOptions = { ...form, withId: options.id, after, head, signal, onProgress }
      if (output.isStdout) return exportTo(process.stdout, view, what)
      const source = engineOf(databaseUrl).path?.(databaseUrl)
      return exportToFile(file, view, { ...what, replace, source })
    })
    return head
  })
  const { format, compression = null } = form
  const database = nameDatabase(databaseUrl)
  const summary = { plants: head - after, after, head, database, file, format, compression }
  const place = output.isStdout ? '' : ` to ${file}`
  const text = `exported ${count(head - after, 'plant')} from ${database}${place}; the log ends at plant ${head}`
  output.report(summary, text)
}

/** Options override the file's name. Exits with 2 when the name's ending is unknown and --format is not given. */
function chooseForm(file: string, options: Options, command: Command) {
  const { format = 'ndjson', compression, unknown } = readName(file)
  if (unknown !== undefined && options.format === undefined)
    command.error(
      `error: the ending ${unknown} of FILE is not known: expected ${endings}; --format says it for another`,
      { exitCode: 2 },
    )
  const { compress = compression } = options
  return { format: options.format ?? format, compression: compress === 'none' ? undefined : compress }
}
