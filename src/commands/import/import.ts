// import: adds the plants of a file to a store, which may be in use. It is checked as a whole before anything is added.
import { setFlagsFromString } from 'node:v8'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { joinWords, listShown } from '../../../schemas/plant.ts'
import { count, makeLogger, printResult, separate } from '../../cli/console.ts'
import { doLongWork } from '../../cli/long-work.ts'
import { addWorkOptions, findDatabase, nameDatabase, type WorkOptions } from '../../cli/options.ts'
import { openStore } from '../../store/engines.ts'
import { formats } from './form.ts'
import { type ImportOptions, importPlants } from './import-plants.ts'
import { type FieldOptions, fieldNames, required } from './plants.ts'
import { maxRecordBytes } from './records.ts'

type Flags = WorkOptions & Omit<ImportOptions, 'path' | 'say'> & { create?: true }

const members = fieldNames.map((field) => (required.has(field) ? field : `${field} (optional)`))

const help = `
FILE holds one JSON object per line (NDJSON), a JSON array of objects, or CSV with a header row; - is stdin. gzip and
zstd are decompressed. Members and columns are ${joinWords(members, 'and')}, as in POST /plants; an empty cell of an
optional column means no value. Other members and columns are faults, unless --map or --ignore-unknown is given.

CSV has commas, semicolons, | or tabs between cells, as its header row shows, or a first line like sep=;. A quoted cell may
span lines. Between tabs and |, a line is a row, and quotation marks are text unless they enclose a whole cell.

The whole input is checked before anything is added. If a record has a fault, or an id that already exists with a different
${listShown('or')}, nothing is added. Each fault is reported with its line; on a terminal the first ten. --skip-invalid adds
the other records. --rejects writes the invalid ones to a new file, as they are in the input: correct them there, and import
that file. A record of more than ${maxRecordBytes / 1024} KiB is left out of it.

Plants are added in batches, each with the progress of the import. If it is interrupted, run the same command again: it
continues where it stopped. An input that begins with what was imported before continues behind that, so a file that has
grown adds what is new. A file that was imported and changed since is refused. --again adds all of it regardless. A service
may run on the database meanwhile. The counts are printed however the import ends.

Exit codes: 0 all imported, 1 some records invalid or the import failed, 2 usage error; 129, 130 or 143 interrupted by
SIGHUP, SIGINT or SIGTERM.`

export function define(command: Command): void {
  command
    .argument('<file>', 'the input; - is stdin')
    .addOption(
      new Option('--format <format>', 'format of the input, instead of detecting it').choices(formats),
    )
    .option('--delimiter <character>', 'what is between the cells of CSV, or tab', parseDelimiter)
    .addOption(
      new Option('--quote <kind>', 'quotation marks in CSV: none means they are text').choices(['none']),
    )
    .option(
      '--map <field=column>',
      `read ${joinWords(fieldNames, 'or')} from this column or member (repeatable)`,
      parseMap,
    )
    .option('--ignore-unknown', 'ignore other columns or members')
    .option('--trim', 'remove white space around texts, and blanks around quoted cells')
    .option('--skip-invalid', 'add the valid records although others are invalid')
    .option('--rejects <file>', 'write invalid records to this new file; - is stdout')
    .option('--again', 'add all of the input, also if it was imported before')
    .option('--dry-run', 'check the input and add nothing')
    .option('--create', 'make the tables in a PostgreSQL database that has other tables, too')
  addWorkOptions(command).addHelpText('after', help).action(run)
}

async function run(path: string, flags: Flags): Promise<void> {
  // Hardly any object outlives its batch, so a larger young or old generation would only waste memory.
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--heap-growing-percent=100')
  const { dryRun, json, rejects } = flags
  const url = findDatabase(flags)
  const startMs = performance.now()
  const reasons: object[] = []
  const counts = { valid: 0, added: 0, replayed: 0, conflicting: 0, rejected: 0, skipped: 0 }
  const place = { database: undefined as string | undefined, made: false }
  let isReported = false
  const report = async () => {
    if (isReported) return
    isReported = true
    const { valid, skipped, ...others } = counts
    const seconds = (performance.now() - startMs) / 1000
    const plantsPerSecond = Math.round((dryRun ? valid : others.added + others.replayed) / seconds)
    const shown = dryRun ? { valid, conflicting: others.conflicting, rejected: others.rejected } : others
    const list = Object.entries(shown).map(([name, number]) => `${separate(number)} ${name}`)
    const where =
      place.database &&
      `${dryRun ? 'compared with' : 'into'} ${place.database}${place.made ? ', made now' : ''}`
    const speed = `${list.join(', ')} in ${seconds.toFixed(1)} s, ${count(plantsPerSecond, 'plant')}/s`
    const text = [speed, where, dryRun && 'nothing was added'].filter(Boolean).join('; ')
    const summary = { ...counts, seconds: Number(seconds.toFixed(3)), plantsPerSecond, ...place, reasons }
    if (others.conflicting + others.rejected > 0) process.exitCode = 1
    // With --rejects - stdout has only the invalid records.
    if (rejects === '-') console.error(json ? JSON.stringify(summary) : text)
    else await printResult(summary, text, json)
  }
  const describe = () => {
    void report()
    return `interrupted${dryRun ? '' : '; run the same command again to continue'}`
  }
  await doLongWork({ quiet: flags.quiet || rejects === '-', describe }, async (progress, signal) => {
    const open = async (create: boolean) => {
      const logger = makeLogger(progress.say)
      const mode = dryRun ? 'read' : 'write'
      const made = () => (place.made = true)
      const store = await openStore(url, { logger, mode, create, mustBeAlone: !flags.create, made })
      // From here on the import reports errors itself.
      logger.level = 'silent'
      place.database = nameDatabase(url)
      return store
    }
    const { isTTY: isTerminal } = process.stderr
    await importPlants(
      { ...flags, path, isTerminal, say: progress.say },
      { ...progress, signal, open, counts, reasons },
    ).finally(() => {
      progress.end()
      return signal.aborted ? undefined : report()
    })
  })
}

function parseMap(text: string, map: NonNullable<FieldOptions['map']> = {}) {
  const [, name, column] = /^(\w+)=(.+)$/s.exec(text) ?? []
  const field = fieldNames.find((one) => one === name)
  if (field === undefined || column === undefined || field in map)
    throw new InvalidArgumentError(
      `Expected ${joinWords(
        fieldNames.map((one) => `${one}=COLUMN`),
        'or',
      )}, each at most once.`,
    )
  return { ...map, [field]: column }
}

function parseDelimiter(text: string): string {
  const delimiter = /^(tab|\\t)$/i.test(text) ? '\t' : text
  if (!/^[^\s"\w]$|^\t$/.test(delimiter) || delimiter > '\x7f')
    throw new InvalidArgumentError('Expected one character, such as ";", or tab.')
  return delimiter
}
