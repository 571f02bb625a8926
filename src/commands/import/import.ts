// import: adds the plants of a file to a store, which may be in use. It is checked as a whole before anything is added.
import { setFlagsFromString } from 'node:v8'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { joinWords, listShown } from '../../../schemas/plant.ts'
import { count, makeLogger, printResult, separate } from '../../cli/console.ts'
import { doLongWork } from '../../cli/long-work.ts'
import { addWorkOptions, findDatabase, nameDatabase, type WorkOptions } from '../../cli/options.ts'
import { openStore } from '../../store/engines.ts'
import { type FormOptions, formats } from './form.ts'
import { type ImportOptions, importPlants } from './import-plants.ts'
import { fieldNames, required } from './plants.ts'

type Flags = WorkOptions & ImportOptions & { create?: true }

const members = fieldNames.map((field) => (required.has(field) ? field : `${field} (optional)`))

const help = `
FILE holds one JSON object per line (NDJSON), a JSON array of objects, or CSV with a header row (between cells commas,
semicolons, | or tabs; a first line like sep=; is understood); - is stdin. gzip and zstd are decompressed. Members and
columns are ${joinWords(members, 'and')}, as in POST /plants. Others are faults, unless --map or --ignore-unknown is given.

The whole input is checked first. If a record has a fault, or an id that exists with a different ${listShown('or')}, nothing
is added, and each fault is reported with its line. --skip-invalid adds the other records; --rejects writes the invalid ones
to a new file, as they are in the input: correct them there, and import that file.

Plants are added in batches, each with the progress; a service may run meanwhile. If the import is interrupted, run the same
command again: it continues where it stopped. An input that begins with one that was imported before continues behind that,
so a file that has grown adds what is new. A file that was changed since is refused. --again adds all of it regardless.

Exit codes: 0 all imported, 1 some records invalid or the import failed, 2 usage error; 129, 130 or 143 interrupted.`

export function define(command: Command): void {
  const choose = (flags: string, text: string, ...choices: string[]) =>
    new Option(flags, text).choices(choices)
  command
    .argument('<file>', 'the input; - is stdin')
    .addOption(choose('--format <format>', 'format of the input, instead of detecting it', ...formats))
    .option('--delimiter <character>', 'what is between the cells of CSV, or tab', parseDelimiter)
    .addOption(choose('--quote <kind>', 'quotation marks in CSV: none means they are text', 'none'))
    .option('--map <field=column>', `read a field from this column or member (repeatable)`, parseMap)
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
    await importPlants(flags, { ...progress, path, signal, open, counts, reasons }).finally(() => {
      progress.end()
      return signal.aborted ? undefined : report()
    })
  })
}

function parseMap(text: string, map: NonNullable<FormOptions['map']> = {}) {
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
