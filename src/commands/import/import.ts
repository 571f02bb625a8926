// import: checks a whole file, then adds its plants to a store, which may be in use.
import { tmpdir } from 'node:os'
import { Readable } from 'node:stream'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { joinWords, listFields } from '../../../schemas/plant.ts'
import { CommandError, count, doLongWork, type Progress, reportFile, separate } from '../../cli/console.ts'
import { checkTarget, writeStreams } from '../../cli/new-file.ts'
import { addWorkOptions, findDatabase, type WorkOptions } from '../../cli/options.ts'
import type { Outcome, Store } from '../../store/engine.ts'
import { nameDatabase, withStore } from '../../store/engines.ts'
import { StoreRefused } from '../../store/errors.ts'
import { isUnwritable } from '../../store/sqlite/errors.ts'
import { addPlants, append, findEarlier } from './add.ts'
import { type Checked, checkInput } from './check.ts'
import { detectForm, type FormOptions, type Input, InputError, type Names, openInput } from './input.ts'
import { fieldNames, required } from './plants.ts'
import type { InputRecord, Source } from './records.ts'

type Choices = { skipInvalid?: true; again?: true; dryRun?: true; create?: true; rejects?: string }
type Flags = WorkOptions & FormOptions & Choices

/** Maximum number of faults shown on a terminal. */
const maxShown = 10
const fields = joinWords(fieldNames, 'or')
const members = fieldNames.map((field) => (required.has(field) ? field : `${field} (optional)`))

const help = `
FILE contains one JSON object per line (NDJSON), a JSON array of objects, or CSV with a header row and cells separated by
commas, semicolons, | or tabs (a first line such as sep=; is supported); - is stdin. gzip and zstd are decompressed. The
members or columns are ${joinWords(members, 'and')}, as in POST /plants. Others are faults, unless you use --map
or --ignore-unknown.

The whole input is checked first. If a record is invalid, or its id exists with a different ${listFields('or')}, each fault is
reported with its line, and nothing is added. --skip-invalid adds the other records; --rejects writes the invalid ones to a
new file in the format of the input: correct and import it.

Plants are added in batches; a service may be running. To resume an interrupted import, run the same command again. If the
input starts with the bytes of an earlier import, only the records after them are added. A file whose imported part has
changed is refused; --again adds all records regardless.`

export function define(command: Command): void {
  command
    .argument('<file>', 'the input; - is stdin')
    .addOption(new Option('--delimiter <character>', 'separator in CSV').choices([',', ';', '|', 'tab']))
    .addOption(new Option('--quote <kind>', 'none: quotation marks in CSV are text').choices(['none']))
    .option('--map <field=column>', `read ${fields} from this column or member (repeatable)`, parseMap)
    .option('--ignore-unknown', 'ignore unknown columns or members')
    .option('--trim', 'remove white space around CSV cells')
    .option('--skip-invalid', 'add the valid records even if others are invalid')
    .option('--rejects <file>', 'write invalid records to this new file; - is stdout')
    .option('--again', 'add all of the input, even if it was imported before')
    .option('--dry-run', 'check the input and add nothing')
    .option('--create', 'create the tables even if the PostgreSQL database has other tables')
  addWorkOptions(command).addHelpText('after', help).action(run)
}

function parseMap(text: string, map: Names = {}): Names {
  const [, field = '', column] = /^(\w+)=(.+)$/s.exec(text) ?? []
  if (fieldNames.some((name) => name === field) && !(field in map)) return { ...map, [field]: column }
  throw new InvalidArgumentError(`Expected FIELD=COLUMN, where FIELD is ${fields}, each at most once.`)
}

/** Where SQLite creates temporary files. */
const { SQLITE_TMPDIR, TMPDIR } = process.env
const temporaryDirectory = SQLITE_TMPDIR || TMPDIR || (process.platform === 'win32' ? tmpdir() : '/var/tmp')

async function run(path: string, flags: Flags): Promise<void> {
  const name = path === '-' ? 'stdin' : path
  const url = findDatabase(flags)
  if (flags.rejects !== undefined && flags.rejects !== '-') checkTarget(flags.rejects)
  const advice = 'interrupted; run the same command again to continue'
  try {
    const closing = await doLongWork({ quiet: flags.quiet, advice }, async (progress, signal) => {
      const input = openInput(path)
      return importInput({ name, url, input, flags, progress, signal }).finally(input.close)
    })
    // The results have been shown, so a signal must not print the advice.
    if (closing) await withStore(url, { mode: 'write' }, (store) => append(store, [], [closing]))
  } catch (error) {
    const { message, syscall, path: at } = error as NodeJS.ErrnoException
    if (isUnwritable(error))
      throw new CommandError(`cannot use a temporary file in ${temporaryDirectory} (TMPDIR): ${message}`)
    const isOfInput = error instanceof InputError || syscall === 'read' || at === path
    throw isOfInput ? new CommandError(`${name}: ${message}`) : error
  }
}

type Job = { name: string; url: string; input: Input; flags: Flags; progress: Progress; signal: AbortSignal }
/** Numbers of plants by outcome; `skipped`: those of an earlier import. */
type Counts = Record<Outcome | 'skipped', number>

/** Resolves like `addPlants`. After a rejection, committed batches remain in the store. */
async function importInput(job: Job) {
  const { name, url, input, flags, progress, signal } = job
  const { value: head = Buffer.alloc(0) } = await input.chunks.next()
  const form = detectForm(head, flags)
  const checked = await checkAll(job, { form, head, chunks: input.chunks })
  if (input.isCut()) throw new InputError('was changed while it was read: run the same command again')
  const { records, plants, conflicts, spool, reasons } = checked
  const valid = plants - conflicts
  const faults = records - valid
  const isRefused = faults > 0 && !flags.skipInvalid
  const counts = { skipped: 0, added: 0, replayed: 0, conflict: 0 }
  const closing = isRefused ? undefined : await addNew(job, checked, counts)
  progress.end()
  const { conflict, skipped, ...added } = counts
  if (conflict > 0) progress.print(`${name}: other clients used some of these ids; see --dry-run`)
  const database = nameDatabase(url)
  const rejected = { conflicting: conflicts + conflict, rejected: faults - conflicts }
  const shown = Object.entries({ ...(flags.dryRun ? { valid } : added), ...rejected })
  const list = shown.map(([what, number]) => `${separate(number)} ${what}`).join(', ')
  const text = `${list}; ${flags.dryRun ? 'nothing was added to' : 'into'} ${database}`
  if (faults + conflict > 0) process.exitCode = 1
  await reportFile(flags.rejects, { valid, skipped, ...added, ...rejected, database, reasons }, text, flags)
  if (flags.rejects !== undefined && faults > 0)
    await writeStreams(flags.rejects, { signal }, [Readable.from(spool.readRejects(form.format))])
  if (!isRefused) return closing
  const all = `faults in ${separate(faults)} of ${count(records, 'record')}`
  throw new CommandError(`${name}: nothing was added: ${all}; --skip-invalid adds the others`)
}

/** Checks the whole input, and reports each fault. `reasons`: the faults for --json. */
async function checkAll({ name, url, flags, progress }: Job, source: Source) {
  let [faults, reported] = [0, 0]
  const reasons: object[] = []
  const onFault = ({ line }: InputRecord, reason: string) => {
    // Bounded, because the report is one string. A fault takes about 100 bytes of memory besides its text.
    reported += JSON.stringify(reason).length + 100
    if (flags.json && reported < 2 ** 27) reasons.push({ line, reason })
    if (++faults <= maxShown || !process.stderr.isTTY) progress.print(`${name}: line ${line}: ${reason}`)
  }
  const check = (store?: Store) => checkInput(source, store, { progress, onFault })
  const checked = await withStore(url, { mode: 'read' }, check).catch((error) => {
    if (error instanceof StoreRefused && error.isMissing) return check()
    throw error
  })
  return { ...checked, reasons }
}

/** Adds the plants after an earlier import, and counts them. */
async function addNew(
  { name, url, input: { path }, flags, progress }: Job,
  checked: Checked,
  counts: Counts,
) {
  const { again = false, dryRun } = flags
  const earlier = findEarlier(checked, path, again)
  const { plants, conflicts } = earlier ?? { plants: 0, conflicts: 0 }
  counts.skipped = plants - conflicts
  if (earlier) progress.print(`${name}: ${count(counts.skipped, 'plant')} already imported`)
  const total = checked.batches.at(-1)?.valid ?? 0
  const isNew = total > plants
  if (!isNew) progress.print(`${name}: no new plants`)
  const isMoved = earlier && path !== undefined && checked.matches.every((match) => match.path !== path)
  if (dryRun || !(isNew || earlier?.isOpen || isMoved)) return undefined
  const add = (store: Store) =>
    addPlants(checked, { path, store, earlier, again }, (outcomes, last) => {
      for (const outcome of outcomes) counts[outcome]++
      progress.show(last, total)
    })
  const adding = withStore(url, { mode: 'write', create: true, mustBeAlone: !flags.create }, add)
  // If only the new path is recorded, the import has succeeded even if that fails.
  return isNew || earlier?.isOpen ? adding : adding.catch(() => undefined)
}
