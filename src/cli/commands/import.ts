// import: adds the plants of a file to a store, which may be in use.
import { setFlagsFromString } from 'node:v8'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { joinWords, listShown } from '../../../schemas/plant.ts'
import { loadDatabaseUrl } from '../../config/load-config.ts'
import { maxBatchPlants, maxSeconds } from '../../limits.ts'
import { type FieldMap, fieldNames, required } from '../../maintenance/import/fields.ts'
import type { ImportOptions } from '../../maintenance/import/import-options.ts'
import { importPlants, makeResult } from '../../maintenance/import/import-plants.ts'
import { InputError, maxRecordBytes } from '../../maintenance/import/record.ts'
import { formats } from '../../maintenance/import/records.ts'
import { separate } from '../../runtime/count.ts'
import { openStore, openView } from '../../store/engines.ts'
import { StoreMissing, StoreRefused, StoreUnavailable } from '../../store/errors.ts'
import { doLongWork } from '../console/long-work.ts'
import { isApart } from '../console/output.ts'
import { tellWarnings } from '../console/warnings.ts'
import { nameDatabase } from '../database-name.ts'
import { addWorkOptions, type WorkOptions, wholeNumber } from '../setting-options.ts'
import { reportImport } from './import/report.ts'

type Flags = Partial<ImportOptions> & WorkOptions & { batch: number; patience: number; create?: true }

/** Such a batch holds the database's lock for some tens of milliseconds, so that others can write in between. */
const defaultBatch = 2500
/** In seconds: more than the time that a cluster takes to promote a new primary. */
const defaultPatience = 20

const members = fieldNames.map((field) => (required.has(field) ? field : `${field} (optional)`))

const help = `
FILE holds one JSON object per line (NDJSON), a JSON array of objects, or CSV with a header row; - is stdin. gzip and
zstd are decompressed. Members and columns are ${joinWords(members, 'and')},
as in POST /plants; an empty cell of an optional column means no value. Other members and columns are faults, unless --map
or --ignore-unknown is given.

CSV may have commas, semicolons or tabs, as its header row shows, and a first line like sep=;.

Records with a fault are rejected; the others are added. A plant whose id already exists with a different ${listShown('or')}
is rejected, too. Line and reason of each go to stderr (on a terminal the first ten), and the first 10,000 into --json. The
file of --rejects holds the rejected records as they were, with the header row of CSV: correct it, and import it. It must
not exist, unless --resume goes on with it. A record of more than ${maxRecordBytes / 1024} KiB is told, but left out of that file. A last
record that is cut short ends the import.

Plants are added in batches, and each batch saves the progress. After an interruption, once a fault in mid-file is corrected,
or when a file has grown, the same command with --resume goes on behind what was imported, if that part is the same to the
byte and ends with a record; otherwise it is refused. Without --resume an input that was imported before, under this name or
another, is refused; --restart adds all of it again. No import is ever forgotten. stdin is known again by its first 64 KiB.

--strict checks everything before the first plant is added, and adds none if a record is rejected. An interruption after that
leaves plants, and --resume goes on; so does a conflict with what others add meanwhile, which is told. --dry-run compares
ids with the database where there is one. A compressed file is read to its end before anything is added, so that none of a
damaged one is; from stdin it cannot be, except with --strict. A service may run on the database meanwhile. The counts are
printed however the import ends.

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
    .option('--strict', 'check everything first, and add nothing if a record is rejected')
    .option('--rejects <file>', 'write rejected records to this new file; - is stdout')
    .option('--resume', 'go on behind what an earlier import of this input consumed')
    .addOption(
      new Option('--restart', 'add all of the input, again if it was imported before').conflicts('resume'),
    )
    .option('--dry-run', 'check the input and add nothing')
    .option('--create', 'make the tables in a PostgreSQL database that has other tables, too')
    .option('--batch <records>', 'records in one transaction', wholeNumber(1, maxBatchPlants), defaultBatch)
    .option(
      '--patience <seconds>',
      'time to retry while the database is unavailable',
      wholeNumber(0, maxSeconds),
      defaultPatience,
    )
  addWorkOptions(command).addHelpText('after', help).action(run)
}

async function run(path: string, flags: Flags): Promise<void> {
  // Hardly any object outlives its batch, so a larger young or old generation would only waste memory.
  setFlagsFromString('--semi-space-growth-factor=1')
  setFlagsFromString('--heap-growing-percent=100')
  const databaseUrl = loadDatabaseUrl(flags.databaseUrl)
  const startMs = performance.now()
  const result = makeResult()
  let database: string | undefined
  let isNew = false
  let isReported = false
  // However the import ends: also when it has no time to end by itself.
  const reportOnce = () => {
    const seconds = (performance.now() - startMs) / 1000
    if (!isReported) reportImport(result, { ...flags, seconds, database, isNew })
    isReported = true
  }
  const patienceMs = flags.patience * 1000
  const quiet = flags.quiet || (flags.rejects === '-' && !isApart())
  const describe = () => {
    reportOnce()
    return `interrupted at record ${separate(result.records)}${flags.dryRun ? '' : `; ${how}`}`
  }
  await doLongWork({ quiet, describe }, (progress, signal) =>
    importPlants({
      ...flags,
      path,
      batchPlants: flags.batch,
      patienceMs,
      signal,
      isTerminal: process.stderr.isTTY,
      async openStore() {
        const made = () => (isNew = true)
        const logger = tellWarnings(progress.say)
        const store = await openStore(databaseUrl, { logger, made, patienceMs, mustBeAlone: !flags.create })
        // From here on the import says itself what fails.
        logger.level = 'silent'
        database = nameDatabase(databaseUrl)
        return store
      },
      async openView() {
        const view = await openView(databaseUrl).catch(ignoreMissing)
        if (view) database = nameDatabase(databaseUrl)
        return view
      },
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

function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof StoreMissing)) throw error
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
