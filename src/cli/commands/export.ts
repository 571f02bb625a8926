// export: writes the plants of the log into a file, or to stdout.
import { Command, InvalidArgumentError, Option } from 'commander'
import { loadDatabaseUrl } from '../config/config.ts'
import { databaseOption } from '../config/options.ts'
import { type Interrupted, onInterrupt } from '../console/interrupt.ts'
import { printResult } from '../console/output.ts'
import { Progress } from '../console/progress.ts'
import { type ExportOptions, exportTo, exportToFile } from '../export/export.ts'
import {
  type CompressionName,
  compressionNames,
  type FormatName,
  formatNames,
  readName,
} from '../export/formats.ts'
import { sqlitePath } from '../store/sqlite/path.ts'
import { StoreRefused } from '../store/store.ts'
import { findHead, openView, type StoreView } from '../store/view.ts'

type Options = {
  databaseUrl?: string
  format?: FormatName
  compress?: CompressionName | 'none'
  after: number
  id: boolean
  force?: true
  json?: true
  quiet?: true
}

const help = `
The ending of FILE names its form: .ndjson, .json or .csv, with .gz or .zst behind it for a compressed one. Without FILE,
or with -, the plants go to stdout as NDJSON, and the summary to stderr.

An export holds the log up to the plant that was the last when it began; a service may add plants meanwhile. FILE gets its
name when it is complete; what an export that was killed leaves behind ends in .partial and may be deleted. The summary
says where the log ended: --after with that number exports what is new since.`

export function exportCommand(): Command {
  return new Command('export')
    .description('Write the plants into a file, or to stdout.')
    .argument('[file]', 'the file; - is stdout', '-')
    .addOption(new Option('--format <format>', 'whatever the name says').choices(formatNames))
    .addOption(
      new Option('--compress <coding>', 'whatever the name says').choices([...compressionNames, 'none']),
    )
    .addOption(
      new Option('--after <position>', 'only the plants after this one').argParser(parsePosition).default(0),
    )
    .option('--no-id', 'without the ids')
    .option('--force', 'replace FILE if it exists')
    .addOption(databaseOption())
    .option('--json', 'print the summary as JSON')
    .option('--quiet', 'show no progress')
    .addHelpText('after', help)
    .action(runExport)
}

async function runExport(file: string, options: Options): Promise<void> {
  const databaseUrl = loadDatabaseUrl(options.databaseUrl)
  const view = await openView(databaseUrl)
  try {
    const head = await findHead(view)
    if (options.after > head)
      throw new StoreRefused(`the log ends at plant ${head}: there is no plant ${options.after}`)
    const source = databaseUrl.startsWith('file:') ? sqlitePath(databaseUrl) : undefined
    await exportFrom(view, file, { head, source, ...options })
  } finally {
    await view.close()
  }
}

async function exportFrom(
  view: StoreView,
  file: string,
  options: Options & { head: number; source: string | undefined },
): Promise<void> {
  const { head, source, after, quiet, json } = options
  const progress = new Progress({ quiet: quiet ?? false })
  const { signal, release } = onInterrupt()
  const form = chooseForm(file, options)
  const work: ExportOptions = {
    ...form,
    withId: options.id,
    after,
    head,
    signal,
    onProgress: (done) => progress.show(done, head - after, 'plants'),
  }
  try {
    if (file === '-') await exportTo(process.stdout, view, work)
    else await exportToFile(file, view, { ...work, replace: options.force, source })
  } catch (error) {
    if (!signal.aborted) throw error
    throw (signal.reason as Interrupted).saying('interrupted: the export is incomplete. Run it again')
  } finally {
    progress.end()
    release()
  }
  const summary = { plants: head - after, after, head, file, ...form }
  const text = `exported ${head - after} plants${file === '-' ? '' : ` to ${file}`}; the log ends at plant ${head}`
  if (file !== '-') printResult(summary, text, json)
  else if (!quiet) console.error(json ? JSON.stringify(summary) : text)
}

/** What an option says goes before what the name of the file says. */
function chooseForm(file: string, options: Options): Pick<ExportOptions, 'format' | 'compression'> {
  const { format = 'ndjson', compression } = readName(file)
  const { compress = compression } = options
  return { format: options.format ?? format, compression: compress === 'none' ? undefined : compress }
}

function parsePosition(text: string): number {
  if (!/^\d{1,15}$/.test(text))
    throw new InvalidArgumentError('Expected the position of a plant, such as 1000.')
  return Number(text)
}
