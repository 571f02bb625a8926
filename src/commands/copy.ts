// copy: copies a whole store to another database, such as from SQLite to PostgreSQL or back.
import { createHash } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import type { Command } from 'commander'
import { CommandError, count, doLongWork, printResult } from '../cli/console.ts'
import { wholeNumber } from '../cli/options.ts'
import { readDatabaseUrl } from '../settings.ts'
import { isDamaged, type Store, type StoredPlant, textOf } from '../store/engine.ts'
import { nameDatabase, withStore } from '../store/engines.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { commandName } from '../version.ts'

type Options = { from: string; to: string; batch: number; quiet?: true; json?: true }

/** `batch`: plants per transaction; `onProgress`: receives the number of plants in both stores. */
type CopyOptions = { batch: number; onProgress: (done: number, total: number) => void }

const help = `
URLs are as in DATABASE_URL. Every user of the machine can see the arguments of a command: put a URL with a password into an
environment variable, and write env:NAME.

--to must be empty, or an earlier copy of --from, which is then resumed. Every plant is read back and compared. The last line
of the output has the SHA-256 of the log. It is computed over one line per plant: position, id, mark and item, separated by
tabs.

A service may be running on --from; the plants that it adds are copied, too. To move to --to: copy, stop the service, copy
again, and start the service on --to. Nothing else may write to --to before that. Over a slow network, use a smaller --batch.`

export function define(command: Command): void {
  command
    .requiredOption('--from <url>', 'the database to copy: a URL or env:NAME')
    .requiredOption('--to <url>', 'the database to copy to: a URL or env:NAME')
    .option('--batch <plants>', 'plants in one transaction', wholeNumber(1, 20_000), 5000)
    .option('--quiet', 'show no progress')
    .option('--json', 'print the result as JSON')
    .addHelpText('after', help)
    .action(runCopy)
}

async function runCopy({ from, to, batch, quiet, json }: Options): Promise<void> {
  const urls = { from: readUrl(from, '--from'), to: readUrl(to, '--to') }
  const names = { from: nameDatabase(urls.from), to: nameDatabase(urls.to) }
  const advice = 'the copy was interrupted. Run the command again to resume.'
  const work = doLongWork({ quiet, advice }, ({ show }) =>
    withStore(urls.from, { mode: 'read' }, async (source) => {
      const { cluster } = await source.status()
      if (cluster?.role === 'standby') throw new CommandError('--from is a standby: use its primary')
      const copy = (target: Store) => copyStore(source, target, { batch, onProgress: show })
      return withStore(urls.to, { mode: 'write', create: true }, copy)
    }),
  )
  const { plants, added, checksum, tokens } = await work.catch((cause) => {
    if (!(cause instanceof StoreUnavailable)) throw cause
    throw new CommandError(
      `the copy failed: ${cause.message}. Run the command again to resume, with a smaller --batch if this repeats.`,
      { cause },
    )
  })
  const done = `copied ${count(added, 'plant')} and ${count(tokens, 'token')} from ${names.from} into ${names.to}`
  const text = `${done}; both contain ${count(plants, 'plant')} now, SHA-256 ${checksum}`
  await printResult({ ...names, added, tokens, plants, checksum }, text, json)
}

/** Reads a URL from the value of an option, or from the environment variable in `env:NAME`. */
function readUrl(text: string, option: string): string {
  const [, variable] = /^env:(.*)$/.exec(text) ?? []
  if (variable === undefined) return readDatabaseUrl(text, option)
  const url = process.env[variable]?.trim()
  if (url) return readDatabaseUrl(url, variable)
  throw new CommandError(`${option} names the environment variable ${variable}, which is not set`)
}

/**
 * Copies a store; a service may be running on it. The target takes over its id, which identifies an interrupted copy.
 * Each step is idempotent. Throws CommandError if the target contains anything but a copy of the source.
 */
export async function copyStore(source: Store, target: Store, options: CopyOptions) {
  if (!(await target.adopt(source.id)))
    throw new CommandError('--to contains plants or tokens that are not in --from: use an empty database')
  const hashes = new Set((await source.tokens.all()).map(({ hash }) => hash))
  const present = await target.tokens.all()
  const other = present.find(({ hash }) => !hashes.has(hash))
  if (other) throw new CommandError(`--to contains the token ${other.id}, which is not in --from`)
  const copied = await copyPlants(source, target, options)
  const tokens = await source.tokens.all()
  const equal = new Set(present.map((token) => JSON.stringify(token)))
  for (const token of tokens) if (!equal.has(JSON.stringify(token))) await target.tokens.put(token)
  return { ...copied, tokens: tokens.length }
}

/**
 * Adds missing plants until the target has all of them, then the notes. Compares all plants, including those of an
 * earlier copy. Resolves to the number of added plants, and the number and SHA-256 of all plants.
 */
async function copyPlants(source: Store, target: Store, { batch, onProgress }: CopyOptions) {
  const checksum = createHash('sha256')
  const { position: total } = await source.log.head()
  let [done, added] = [0, 0]
  for (;;) {
    const plants = await source.plants(done, end, batch)
    const isFaulty = (one: StoredPlant, index: number) => isDamaged(one) || one.position !== done + index + 1
    if (plants.some(isFaulty)) throw new CommandError(`--from is damaged: see ${commandName} verify`)
    // After the last batch, reads one more plant: the target must not have any.
    const present = await target.plants(done, end, plants.length || 1)
    checksum.update(compare(present, plants.slice(0, present.length), done))
    const missing = plants.slice(present.length)
    if (missing.length > 0) {
      await target.put(missing)
      const copied = done + present.length
      checksum.update(compare(await target.plants(copied, end, missing.length), missing, copied))
    }
    added += missing.length
    done += plants.length
    onProgress(done, Math.max(done, total))
    // A turn of the event loop handles signals: reads of SQLite do not.
    await turn()
    if (plants.length > 0) continue
    // If the head has not moved since the notes were read, they describe only copied plants.
    const notes = await source.notes()
    if ((await source.log.head()).position > done) continue
    const held = await target.notes()
    for (const [key, value] of notes)
      if (value !== held.get(key))
        await target.log.append([], { notes: [{ key, value, before: held.get(key) ?? '' }] })
    return { plants: done, added, checksum: checksum.digest('hex') }
  }
}

/** The maximum position in a log. */
const end = Number.MAX_SAFE_INTEGER

/** Compares the plants after `after`, and returns their lines. Throws CommandError if they differ. */
function compare(copied: StoredPlant[], plants: StoredPlant[], after: number): string {
  const toLines = (some: StoredPlant[]) => some.map((plant) => `${textOf(plant)}\n`).join('')
  const lines = toLines(plants)
  if (toLines(copied) === lines) return lines
  throw new CommandError(`--to differs from --from after plant ${after}, or another program writes to it`)
}
