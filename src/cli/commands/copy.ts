// copy: copies a whole store into another database, such as from SQLite to PostgreSQL or back.
import { Command } from 'commander'
import pino from 'pino'
import { maxBatchPlants } from '../../limits.ts'
import { copyEpochs } from '../../maintenance/copy/copied-epochs.ts'
import { copyPlants } from '../../maintenance/copy/copied-plants.ts'
import { checkTokens, copyTokens } from '../../maintenance/copy/copied-tokens.ts'
import { openSource, type Source } from '../../maintenance/copy/source.ts'
import { claimTarget, renameTarget } from '../../maintenance/copy/target.ts'
import { count } from '../../runtime/count.ts'
import { openStore } from '../../store/open.ts'
import { type Store, StoreRefused, StoreUnavailable } from '../../store/store.ts'
import { doLongWork } from '../console/long-work.ts'
import { printResult } from '../console/output.ts'
import { numberOption } from '../setting-options.ts'
import { named, readUrlArgument } from '../url-argument.ts'

type CopyOptions = { from: string; to: string; batch: number; quiet?: true; json?: true }

const help = `
URLs are as in DATABASE_URL: file:data/plants.db, postgres://USER@HOST:5432/DATABASE. Every user of the machine can see the
arguments of a command: put a URL with a password into an environment variable and write env:NAME, or into a file that only
you can read and write @FILE.

--to must be empty, or an earlier copy of --from, which is continued, however it was interrupted. Every plant is read back
and compared. The last line has the SHA-256 over the whole log, the same in both: a line per plant, of position, id (or
nothing) and item, separated by tabs.

A service may run on --from meanwhile; the plants that it adds are copied, too. To move for good: copy, stop the service,
copy again, and start the service on --to. No service may run on --to before that.`

export function makeCommand(): Command {
  return new Command('copy')
    .requiredOption('--from <url>', 'the database to copy: a URL, env:NAME or @FILE')
    .requiredOption('--to <url>', 'the database to copy to, likewise')
    .addOption(
      numberOption(
        '--batch <plants>',
        'plants in one transaction; use fewer over a slow network',
        1,
        maxBatchPlants,
      ).default(5000),
    )
    .option('--quiet', 'show no progress')
    .option('--json', 'print the summary as JSON')
    .addHelpText('after', help)
    .action(async (options: CopyOptions) => {
      const urls = {
        from: readUrlArgument(options.from, '--from'),
        to: readUrlArgument(options.to, '--to'),
      }
      await withStores(urls, (source, target) => copyStore(source, target, options))
    })
}

async function copyStore(source: Source, target: Store, options: CopyOptions): Promise<void> {
  const { batch, quiet, json } = options
  const { guard, release } = await claimTarget(source, target)
  await checkTokens(source, target.sql)
  const describe = () => 'the copy was interrupted. Run it again to go on.'
  const { plants, added, checksum, tokens } = await doLongWork(
    { quiet, describe },
    async (progress, signal) => {
      const onProgress = (done: number, total: number) => progress.show(done, total, 'plant')
      const copied = await copyPlants(source, target, { batchPlants: batch, guard, onProgress, signal })
      const tokens = await copyTokens(source, target.sql)
      await copyEpochs(source, target.sql, copied.plants)
      await release()
      return { ...copied, tokens }
    },
  )
  const text = `copied ${count(added, 'plant')} and ${count(tokens, 'token')}; both hold ${count(plants, 'plant')} now, SHA-256 ${checksum}`
  printResult({ added, tokens, plants, checksum }, text, json)
}

async function withStores(
  { from, to }: Pick<CopyOptions, 'from' | 'to'>,
  work: (source: Source, target: Store) => Promise<void>,
): Promise<void> {
  const source = await named('--from', openSource(from))
  try {
    const target = await openTarget(source, to).catch(explain)
    await work(source, target)
      .catch(explain)
      .finally(() => target.close())
  } finally {
    await source.view.close()
  }
}

/** Opens the target. A store reads its identity when it is opened, so one that takes over another's is opened again. */
async function openTarget(source: Source, url: string): Promise<Store> {
  const target = await openTo(url)
  if (target.id === source.id) return target
  await renameTarget(source, target).finally(() => target.close())
  return openTo(url)
}

function openTo(url: string): Promise<Store> {
  return named('--to', openStore(url, { logger: pino({ level: 'error' }, pino.destination(2)) }))
}

function explain(error: unknown): never {
  if (!(error instanceof StoreUnavailable)) throw error
  throw new StoreRefused(`the copy was cut short: ${error.message}. Run it again to go on.`, { cause: error })
}
