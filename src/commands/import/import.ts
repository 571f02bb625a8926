// import: adds the plants of a file to a store, which may be in use. It is checked as a whole before anything is added.
import { setFlagsFromString } from 'node:v8'
import { type Command, InvalidArgumentError, Option } from 'commander'
import { joinWords, listShown } from '../../../schemas/plant.ts'
import { CommandError, count, makeLogger, printResult, separate } from '../../cli/console.ts'
import { doLongWork, type Progress } from '../../cli/long-work.ts'
import { addWorkOptions, findDatabase, nameDatabase, type WorkOptions } from '../../cli/options.ts'
import type { Store } from '../../store/engine.ts'
import { openStore } from '../../store/engines.ts'
import { StoreMissing } from '../../store/errors.ts'
import { addPlants } from './add.ts'
import { checkInput } from './check.ts'
import { detectForm, type FormOptions, formats } from './form.ts'
import { openInput } from './input.ts'
import { findEarlier, readNotes } from './notes.ts'
import { fieldNames, required } from './plants.ts'
import { InputError } from './records.ts'
import { makeRejects } from './rejects.ts'

type Choices = { skipInvalid?: true; again?: true; dryRun?: true; create?: true; rejects?: string }
type Flags = WorkOptions & FormOptions & Choices

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
  const job = new ImportJob(path, flags)
  const describe = () => {
    void job.report()
    return `interrupted${flags.dryRun ? '' : '; run the same command again to continue'}`
  }
  await doLongWork({ quiet: flags.quiet || flags.rejects === '-', describe }, async (progress, signal) => {
    await job.run(progress, signal).finally(() => {
      progress.end()
      return signal.aborted ? undefined : job.report()
    })
  })
}

class ImportJob {
  readonly #path: string
  readonly #name: string
  readonly #flags: Flags
  readonly #url: string
  readonly #startMs = performance.now()
  readonly #closers: (() => unknown)[] = []
  readonly #reasons: object[] = []
  /**
   * `valid`: records that can be added, or were before; `skipped`: those that were; `conflicting`: with an id that exists
   * with another plant; `rejected`: other invalid records.
   */
  readonly #counts = { valid: 0, added: 0, replayed: 0, conflicting: 0, rejected: 0, skipped: 0 }
  readonly #place = { database: undefined as string | undefined, made: false }
  #isReported = false

  constructor(path: string, flags: Flags) {
    this.#path = path
    this.#name = path === '-' ? 'stdin' : path
    this.#flags = flags
    this.#url = findDatabase(flags)
  }

  /** Throws CommandError, StoreRefused or StoreUnavailable; batches that are committed stay. */
  async run(progress: Progress, signal: AbortSignal): Promise<void> {
    try {
      await this.#import(progress, signal)
    } catch (error) {
      const { message, line, syscall } = error as InputError & NodeJS.ErrnoException
      const name = `${this.#name}${line ? `, line ${line}` : ''}`
      if (error instanceof InputError) throw new CommandError(`${name}: ${message}`)
      throw syscall === undefined ? error : new CommandError(`cannot read ${name}: ${message}`)
    } finally {
      for (const close of this.#closers) await close()
    }
  }

  async #import(progress: Progress, signal: AbortSignal): Promise<void> {
    const { skipInvalid, again = false, dryRun, json, rejects: file } = this.#flags
    const { say, show } = progress
    const [name, counts] = [this.#name, this.#counts]
    const rejects = makeRejects(name, file, json && this.#reasons, say)
    const input = await openInput(this.#path, signal)
    this.#closers.push(rejects.close, input.close)
    const store = await this.#open(progress, false).catch(ignoreMissing)
    const rows = await readNotes(store)
    const source = { input, form: detectForm(await input.readHead(), this.#flags), rows }
    const checked = await checkInput({ ...source, store }, rejects, (records) => {
      signal.throwIfAborted()
      show(records, undefined, 'record')
    })
    const { records, plants, conflicts } = checked
    Object.assign(counts, { valid: plants - conflicts, conflicting: conflicts, rejected: records - plants })
    const invalid = records - counts.valid
    const isRefused = invalid > 0 && !skipInvalid
    const earlier = isRefused ? undefined : findEarlier(rows, checked.matching, input.path, again)
    counts.skipped = earlier?.plants ?? 0
    if (earlier) say(`${name}: ${count(counts.skipped, 'plant')} already imported`)
    if (!isRefused && plants === counts.skipped) say(`${name}: nothing is new`)
    else if (!isRefused && !dryRun) {
      const outcomes = { added: 0, replayed: 0, conflict: 0 }
      const onBatch = (done: number) => {
        const { conflict, ...others } = outcomes
        Object.assign(counts, { ...others, conflicting: Math.max(conflicts, conflict) })
        show(done, plants)
      }
      const target = store ?? (await this.#open(progress, true))
      await addPlants({ ...source, name, store: target, checked, earlier, again, outcomes, signal, onBatch })
    }
    await rejects.publish(source.form.format === 'json' ? '\n]\n' : '', signal)
    if (!isRefused || dryRun) return
    const shown = `${separate(invalid)} of ${count(records, 'record')}`
    throw new CommandError(
      `${name}: nothing was added, as ${shown} cannot be added; --skip-invalid adds the others`,
    )
  }

  async #open({ say }: Progress, create: boolean): Promise<Store> {
    const logger = makeLogger(say)
    const mode = this.#flags.dryRun ? 'read' : 'write'
    const made = () => (this.#place.made = true)
    const store = await openStore(this.#url, { logger, mode, create, mustBeAlone: !this.#flags.create, made })
    this.#closers.push(() => store.close())
    // From here on the import reports errors itself.
    logger.level = 'silent'
    this.#place.database = nameDatabase(this.#url)
    return store
  }

  /** Prints the counts, once, and makes the exit code 1 when records are invalid. */
  async report(): Promise<void> {
    if (this.#isReported) return
    this.#isReported = true
    const { dryRun, json, rejects } = this.#flags
    const { valid, skipped, ...others } = this.#counts
    const { database, made } = this.#place
    const seconds = (performance.now() - this.#startMs) / 1000
    const plantsPerSecond = Math.round((dryRun ? valid : others.added + others.replayed) / seconds)
    const shown = dryRun ? { valid, conflicting: others.conflicting, rejected: others.rejected } : others
    const list = Object.entries(shown).map(([name, number]) => `${separate(number)} ${name}`)
    const where = database && `${dryRun ? 'compared with' : 'into'} ${database}${made ? ', made now' : ''}`
    const speed = `${list.join(', ')} in ${seconds.toFixed(1)} s, ${count(plantsPerSecond, 'plant')}/s`
    const text = [speed, where, dryRun && 'nothing was added'].filter(Boolean).join('; ')
    const summary = { ...this.#counts, seconds: Number(seconds.toFixed(3)), plantsPerSecond, database, made }
    if (others.conflicting + others.rejected > 0) process.exitCode = 1
    // With --rejects - stdout has only the invalid records.
    if (rejects !== '-') await printResult({ ...summary, reasons: this.#reasons }, text, json)
    else console.error(json ? JSON.stringify({ ...summary, reasons: this.#reasons }) : text)
  }
}

function ignoreMissing(error: unknown): undefined {
  if (!(error instanceof StoreMissing)) throw error
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
