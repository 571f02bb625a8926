// import: adds the plants of a file to a store, which may be in use.
import { setFlagsFromString } from 'node:v8'
import { type Command, InvalidArgumentError, Option } from 'commander'
import pino, { type Logger } from 'pino'
import { joinWords, listShown } from '../../../schemas/plant.ts'
import { loadDatabaseUrl } from '../../config/load-config.ts'
import { maxBatchPlants, maxSeconds } from '../../limits.ts'
import { type FieldMap, fieldNames, required } from '../../maintenance/import/fields.ts'
import {
  defaultBatchPlants,
  defaultPatienceMs,
  type ImportOptions,
  type ImportResult,
} from '../../maintenance/import/import-options.ts'
import { importPlants, makeResult } from '../../maintenance/import/import-plants.ts'
import { InputError } from '../../maintenance/import/input-error.ts'
import { formats } from '../../maintenance/import/input-format.ts'
import { count, separate } from '../../runtime/count.ts'
import { openStore } from '../../store/open.ts'
import { StoreRefused, StoreUnavailable } from '../../store/store.ts'
import { doLongWork } from '../console/long-work.ts'
import { isApart, printResult, warnResult } from '../console/output.ts'
import { addWorkOptions, type WorkOptions, wholeNumber } from '../setting-options.ts'

type Flags = Omit<ImportOptions, 'path' | 'signal' | 'openStore' | 'say' | 'result'> &
  WorkOptions & { batch: number; patience: number }

const members = fieldNames.map((field) => (required.has(field) ? field : `${field} (optional)`))

const help = `
FILE holds one JSON object per line (NDJSON), a JSON array of objects, or CSV with a header row; - is stdin. gzip and
zstd are decompressed. Members and columns are ${joinWords(members, 'and')},
as in POST /plants; an empty cell of an optional column means no value. Other members and columns are faults, unless --map
or --ignore-unknown is given.

Records with a fault are rejected; the others are added. Rejected records are reported with line and reason: the first ten
here, all of them in the file of --rejects, as JSON lines with line, reason, errors, text, and the header of CSV. A plant
whose id already exists with a different ${listShown('or')} is rejected, too. Correct the texts in that file and import the
file itself. --rejects never overwrites any other kind of file. --strict checks the whole input first, and adds nothing if
any record has a fault.

Plants are added in batches, and each batch saves the progress. After an interruption, or once a fault in mid-file is
corrected, the same command with --resume continues from there, so that no plant is missing or added twice. Without --resume
an interrupted import is refused, unless --restart starts from the beginning. An input is recognized by the records in its
first 64 KiB: do not change what was imported before you resume. If a file has grown since its import, --resume adds the
rest. A service may run on the database meanwhile. The counts are printed however the import ends.

Exit codes: 0 all imported, 1 some records rejected or the import failed, 2 usage error; 129, 130 or 143 interrupted by
SIGHUP, SIGINT or SIGTERM.`

export function define(command: Command): void {
  command
    .argument('<file>', 'the input; - is stdin')
    .addOption(
      new Option('--format <format>', 'format of the input, instead of detecting it').choices(formats),
    )
    .option(
      '--map <field=column>',
      `take ${joinWords(fieldNames, 'or')} from this column or member (repeatable)`,
      parseMap,
    )
    .option('--ignore-unknown', 'ignore other columns or members')
    .option('--trim', 'remove white space around texts')
    .option('--strict', 'check first; add all records or none')
    .option('--rejects <file>', 'write rejected records to this file; - is stdout')
    .option('--resume', 'continue an interrupted import of this file, or one of a file that has grown')
    .addOption(
      new Option(
        '--restart',
        'start from the beginning in spite of an interrupted import of this file',
      ).conflicts('resume'),
    )
    .option('--dry-run', 'check the file and add nothing')
    .option(
      '--batch <records>',
      'records in one transaction',
      wholeNumber(1, maxBatchPlants),
      defaultBatchPlants,
    )
    .option(
      '--patience <seconds>',
      'time to retry while the database is unavailable',
      wholeNumber(0, maxSeconds),
      defaultPatienceMs / 1000,
    )
  addWorkOptions(command).addHelpText('after', help).action(run)
}

async function run(path: string, flags: Flags): Promise<void> {
  // Hardly any object outlives its batch, so a larger young or old generation would only waste memory.
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--heap-growing-percent=100')
  const databaseUrl = loadDatabaseUrl(flags.databaseUrl)
  const startMs = performance.now()
  const quiet = flags.quiet || (flags.rejects === '-' && !isApart())
  const result = makeResult()
  let isReported = false
  // However the import ends: also when it has no time to end by itself.
  const reportOnce = () => {
    if (!isReported) report(result, (performance.now() - startMs) / 1000, flags)
    isReported = true
  }
  const describe = () => {
    reportOnce()
    return `interrupted at record ${separate(result.records)}${flags.dryRun ? '' : `; ${how}`}`
  }
  await doLongWork({ quiet, describe }, (progress, signal) =>
    importPlants({
      ...flags,
      path,
      batchPlants: flags.batch,
      patienceMs: flags.patience * 1000,
      signal,
      openStore: () =>
        openStore(databaseUrl, { logger: tellWarnings(progress.say), patienceMs: flags.patience * 1000 }),
      say: progress.say,
      onProgress: (read, share) => progress.show(read, share && Math.max(read, Math.round(read / share))),
      result,
    })
      .finally(() => {
        progress.end()
        reportOnce()
      })
      .catch((error) => explain(error, flags.dryRun ? 0 : result.records)),
  )
}

/** Makes a logger that says why a database cannot be connected to yet; the rest the import says itself. */
function tellWarnings(say: (line: string) => void): Logger {
  const write = (line: string) => {
    const { msg, reason } = JSON.parse(line)
    if (reason !== undefined) say(`${msg}: ${reason}`)
  }
  return pino({ level: 'warn' }, { write })
}

function report(result: ImportResult, seconds: number, { dryRun, json, rejects }: Flags): void {
  // With --rejects - stdout holds rejected records alone.
  const print = rejects === '-' ? warnResult : printResult
  const { added, replayed, conflict: conflicting, rejected, skipped } = result
  const plantsPerSecond = Math.round((added + replayed + conflicting) / seconds)
  const [valid, invalid] = [added + replayed, rejected + conflicting]
  const counts = dryRun
    ? { added: 0, replayed: 0, conflicting: 0, rejected: invalid }
    : { added, replayed, conflicting, rejected }
  const shown = Object.entries(dryRun ? { valid, rejected: invalid } : counts)
  const list = shown.map(([name, number]) => `${separate(number)} ${name}`).join(', ')
  const text = `${list} in ${seconds.toFixed(1)} s, ${count(plantsPerSecond, 'plant')}/s`
  const summary = { valid, ...counts, skipped, seconds: Number(seconds.toFixed(3)), plantsPerSecond }
  print(summary, dryRun ? `${text}; nothing was added` : text, json)
  if (invalid > 0) process.exitCode = 1
}

const how = 'run the same command with --resume to go on'

function explain(error: unknown, records: number): never {
  if (error instanceof InputError && records > 0)
    throw new StoreRefused(`${error.message}; correct it, and ${how}`)
  if (!(error instanceof StoreUnavailable)) throw error
  throw new StoreRefused(`the import was cut short: ${error.message}; ${how}`, { cause: error })
}

function parseMap(text: string, map: FieldMap = {}): FieldMap {
  const [, name, column] = /^(\w+)=(.+)$/s.exec(text) ?? []
  const field = fieldNames.find((one) => one === name)
  if (field === undefined || column === undefined || field in map)
    throw new InvalidArgumentError(`It takes ${fieldNames.join('=COLUMN, ')}=COLUMN, each once.`)
  return { ...map, [field]: column }
}
