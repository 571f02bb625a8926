// import: plants from a file, into a store that may be in use.
import { setFlagsFromString } from 'node:v8'
import { Command, InvalidArgumentError, Option } from 'commander'
import pino from 'pino'
import { loadDatabaseUrl } from '../config/config.ts'
import { databaseOption } from '../config/options.ts'
import { Interrupted, onInterrupt } from '../console/interrupt.ts'
import { printResult } from '../console/output.ts'
import { Progress } from '../console/progress.ts'
import { type FieldName, fieldNames } from '../import/fields.ts'
import { type Format, formats } from '../import/format.ts'
import { importPlants } from '../import/import.ts'
import type { Input } from '../import/input.ts'
import { defaultBatchPlants, defaultPatienceMs, type ImportResult } from '../import/options.ts'
import { openStore } from '../store/open.ts'
import { StoreRefused, StoreUnavailable } from '../store/store.ts'

type Map = Partial<Record<FieldName, string>>
type Flags = {
  databaseUrl?: string
  format?: Format
  map?: Map
  ignoreUnknown?: true
  trim?: true
  strict?: true
  rejects?: string
  resume?: true
  dryRun?: true
  batch: number
  patience: number
  json?: true
  quiet?: true
}

const maxBatchPlants = 20_000
const maxPatienceSeconds = 3600

const help = `
FILE holds one JSON object per line (NDJSON), a JSON array of objects, or CSV with a header row; - is stdin. gzip and
zstd are decompressed. Objects and rows have a name, a tag and perhaps an id, as in POST /plants; an empty id cell is
none. With --map or --ignore-unknown, other members and columns are left out; without, they are faults.

Records with a fault are not added; the rest is. They are reported with line and reason: the first ten here, all of them
in the file of --rejects, as JSON lines with line, reason, errors and text; it takes the place of no other kind of file.
A plant whose id exists with another name or tag is reported in the same way.

Plants are added in batches, and each batch notes how far the import is. After an interruption, the same command with
--resume goes on after the last batch: nothing is missing, nothing is there twice. It needs the same input and options,
and an input is known by its first 64 KiB: do not resume with one that differs before the place. An input that was
imported to its end, and has grown since, is imported from there on. A service may run on the database.

Exit codes: 0 all imported, 1 some records rejected or the import failed, 2 not understood, 130 or 143 interrupted.`

export function importCommand(): Command {
  return new Command('import')
    .description('Add the plants of a file: NDJSON, JSON or CSV, also compressed.')
    .argument('<file>', 'what to import; - is stdin')
    .addOption(new Option('--format <format>', 'instead of looking at the content').choices(formats))
    .option('--map <field=column>', 'take name, tag or id from this column or member (repeatable)', parseMap)
    .option('--ignore-unknown', 'leave out other columns or members')
    .option('--trim', 'remove white space around names and tags')
    .option('--strict', 'stop at the first record that is rejected')
    .option('--rejects <file>', 'write all rejected records into this file')
    .option('--resume', 'go on where an import of this file was cut short')
    .option('--dry-run', 'check the file and add nothing')
    .addOption(
      new Option('--batch <plants>', 'plants in one transaction')
        .argParser(parseNumber(1, maxBatchPlants))
        .default(defaultBatchPlants),
    )
    .addOption(
      new Option('--patience <seconds>', 'how long to try again while the database takes nothing')
        .argParser(parseNumber(0, maxPatienceSeconds))
        .default(defaultPatienceMs / 1000),
    )
    .addOption(databaseOption())
    .option('--json', 'print the result as JSON')
    .option('--quiet', 'show no progress')
    .addHelpText('after', help)
    .action(run)
}

async function run(path: string, flags: Flags): Promise<void> {
  // Hardly anything lives longer than a batch: a larger space for new objects would be memory without a use.
  setFlagsFromString('--semi-space-growth-factor=1')
  const databaseUrl = loadDatabaseUrl(flags.databaseUrl)
  const progress = new Progress({ quiet: flags.quiet ?? false })
  const interrupt = onInterrupt()
  const startMs = performance.now()
  let done = 0
  try {
    const result = await importPlants({
      ...flags,
      path,
      batchPlants: flags.batch,
      patienceMs: flags.patience * 1000,
      signal: interrupt.signal,
      openStore: () => openStore(databaseUrl, { logger: pino({ level: 'silent' }) }),
      say: (line) => progress.say(line),
      onProgress(records, input) {
        done = records
        progress.show(records, estimate(records, input), 'plants')
      },
    })
    progress.end()
    report(result, (performance.now() - startMs) / 1000, flags)
  } catch (error) {
    progress.end()
    throw explain(error, done)
  } finally {
    interrupt.release()
  }
}

/** How many records there will be, by how much of the file they took so far. */
function estimate(records: number, { size, bytesRead }: Input): number | undefined {
  return size === undefined ? undefined : Math.max(records, Math.round((records * size) / bytesRead()))
}

function report(result: ImportResult, seconds: number, { dryRun, json }: Flags): void {
  const { added, replayed, conflict: conflicting, rejected, skipped } = result
  const plantsPerSecond = Math.round((added + replayed + conflicting) / seconds)
  const time = { seconds: Number(seconds.toFixed(3)), plantsPerSecond }
  const words = `in ${seconds.toFixed(1)} s, ${count(plantsPerSecond)} plants/s`
  if (dryRun)
    printResult(
      { valid: added, rejected, ...time },
      `${count(added)} valid, ${count(rejected)} rejected ${words}; nothing was added`,
      json,
    )
  else
    printResult(
      { added, replayed, conflicting, rejected, skipped, ...time },
      `${count(added)} added, ${count(replayed)} replayed, ${count(conflicting)} conflicting, ${count(rejected)} rejected ${words}`,
      json,
    )
  if (rejected + conflicting > 0) process.exitCode = 1
}

function count(number: number): string {
  return number.toLocaleString('en-US')
}

function explain(error: unknown, records: number): unknown {
  const how = 'run the same command with --resume to go on'
  if (error instanceof Interrupted) return error.saying(`interrupted at record ${count(records)}; ${how}`)
  if (!(error instanceof StoreUnavailable)) return error
  return new StoreRefused(`the import was cut short: ${error.message}; ${how}`, { cause: error })
}

function parseMap(text: string, map: Map = {}): Map {
  const [, field, column] = /^(name|tag|id)=(.+)$/s.exec(text) ?? []
  if (field === undefined || column === undefined || field in map)
    throw new InvalidArgumentError(`It takes ${fieldNames.join('=COLUMN, ')}=COLUMN, each once.`)
  return { ...map, [field]: column }
}

function parseNumber(least: number, most: number) {
  return (text: string) => {
    if (/^\d+$/.test(text) && Number(text) >= least && Number(text) <= most) return Number(text)
    throw new InvalidArgumentError(`It takes a number from ${least} to ${most}.`)
  }
}
