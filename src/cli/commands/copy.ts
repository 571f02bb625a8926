// copy: the way of a whole store from one database to another, from SQLite to PostgreSQL and back.
import { Command, InvalidArgumentError, Option } from 'commander'
import pino from 'pino'
import { readUrlArgument } from '../config/url-argument.ts'
import { Interrupted, onInterrupt } from '../console/interrupt.ts'
import { printResult } from '../console/output.ts'
import { Progress } from '../console/progress.ts'
import { copyEpochs } from '../copy/epochs.ts'
import { copyPlants } from '../copy/plants.ts'
import { claimTarget, renameTarget } from '../copy/target.ts'
import { checkTokens, copyTokens } from '../copy/tokens.ts'
import { openStore } from '../store/open.ts'
import { type Store, StoreMissing, StoreRefused, StoreUnavailable } from '../store/store.ts'

type CopyOptions = { from: string; to: string; batch: number; quiet?: true; json?: true }

const maxBatchPlants = 20_000

const help = `
URLs are like those of DATABASE_URL: file:data/plants.db, postgres://USER@HOST:5432/DATABASE. Every user of the machine can
see the arguments of a command: put a URL with a password into an environment variable and name it as env:NAME, or into a
file that only you can read and name it as @FILE.

--to must be empty, or a copy of --from that was begun before: then the copy goes on from where it was, however it was
cut short. Every plant is read back and compared. The last line gives the SHA-256 over the whole log, which is the same
in both: one line per plant, of position, id (or nothing) and item with tabs in between.

A service may run on --from meanwhile; what it adds is copied, too, until there is nothing new. To move for good, copy,
stop the service, copy again, and start it on --to. No service may run on --to before.`

export function copyCommand(): Command {
  return new Command('copy')
    .description('Copy all plants and tokens into another database, and check the copy.')
    .requiredOption('--from <url>', 'the database to copy; env:NAME and @FILE say where its URL is')
    .requiredOption('--to <url>', 'the database to copy into, likewise')
    .addOption(
      new Option('--batch <plants>', 'plants in one transaction; fewer suit a slow network')
        .argParser(parseBatch)
        .default(5000),
    )
    .option('--quiet', 'show no progress')
    .option('--json', 'say at the end what was copied as JSON')
    .addHelpText('after', help)
    .action(async (options: CopyOptions, command: Command) => {
      const urls = {
        from: readUrlArgument(options.from, '--from', command),
        to: readUrlArgument(options.to, '--to', command),
      }
      await withStores(urls, (source, target) => copyStore(source, target, options))
    })
}

async function copyStore(source: Store, target: Store, options: CopyOptions): Promise<void> {
  const { batch, quiet = false, json } = options
  const { guard, release } = await claimTarget(source, target)
  await checkTokens(source.sql, target.sql)
  const progress = new Progress({ quiet })
  const onProgress = (done: number, total: number) => progress.show(done, total, 'plants')
  const { signal } = onInterrupt()
  const copied = copyPlants(source, target, { batchPlants: batch, guard, onProgress, signal })
  const { plants, added, checksum } = await copied.finally(() => progress.end())
  const tokens = await copyTokens(source.sql, target.sql)
  await copyEpochs(source.sql, target.sql, plants)
  await release()
  const text = `copied ${added} plants and ${tokens} tokens; both hold ${plants} plants now, SHA-256 ${checksum}`
  printResult({ added, tokens, plants, sha256: checksum }, text, json)
}

async function withStores(
  { from, to }: Pick<CopyOptions, 'from' | 'to'>,
  work: (source: Store, target: Store) => Promise<void>,
): Promise<void> {
  const source = await open('--from', from)
  try {
    const target = await openTarget(source, to).catch(explain)
    await work(source, target)
      .catch(explain)
      .finally(() => target.close())
  } finally {
    await source.close()
  }
}

/** A store keeps to the name that it had when it was opened: a target that takes over another is opened again. */
async function openTarget(source: Store, url: string): Promise<Store> {
  const target = await open('--to', url)
  if (target.id === source.id) return target
  await renameTarget(source, target).finally(() => target.close())
  return open('--to', url)
}

async function open(option: '--from' | '--to', url: string): Promise<Store> {
  try {
    const logger = pino({ level: 'error' }, pino.destination(2))
    return await openStore(url, { logger, mustExist: option === '--from' })
  } catch (error) {
    // Neither the setting nor the working directory has a say in it.
    if (error instanceof StoreMissing) throw new StoreRefused(error.message)
    // An engine knows its URL by the name of the service's setting.
    const refusal = error as Error
    refusal.message = refusal.message.replaceAll('DATABASE_URL', option)
    throw refusal
  }
}

function explain(error: unknown): never {
  if (error instanceof Interrupted) throw error.saying('the copy was interrupted. Run it again to go on.')
  if (!(error instanceof StoreUnavailable)) throw error
  throw new StoreRefused(`the copy was cut short: ${error.message}. Run it again to go on.`, { cause: error })
}

function parseBatch(text: string): number {
  const plants = Number(text)
  if (!/^\d+$/.test(text) || plants < 1 || plants > maxBatchPlants)
    throw new InvalidArgumentError(`It takes a number from 1 to ${maxBatchPlants}.`)
  return plants
}
