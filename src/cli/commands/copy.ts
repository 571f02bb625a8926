// copy: copies a whole store into another database, such as from SQLite to PostgreSQL or back.
import type { Command } from 'commander'
import pino from 'pino'
import { maxBatchPlants } from '../../limits.ts'
import { copyStore, openTarget } from '../../maintenance/copy/copy-store.ts'
import { count } from '../../runtime/count.ts'
import { openStore, withView } from '../../store/engines.ts'
import { StoreRefused, StoreUnavailable } from '../../store/errors.ts'
import { doLongWork } from '../console/long-work.ts'
import { printResult } from '../console/output.ts'
import { nameDatabase } from '../database-name.ts'
import { wholeNumber } from '../setting-options.ts'
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

export function define(command: Command): void {
  command
    .requiredOption('--from <url>', 'the database to copy: a URL, env:NAME or @FILE')
    .requiredOption('--to <url>', 'the database to copy to, likewise')
    .option(
      '--batch <plants>',
      'plants in one transaction; use fewer over a slow network',
      wholeNumber(1, maxBatchPlants),
      5000,
    )
    .option('--quiet', 'show no progress')
    .option('--json', 'print the summary as JSON')
    .addHelpText('after', help)
    .action((options: CopyOptions) => runCopy(options).catch(explain))
}

async function runCopy({ from, to, batch: batchPlants, quiet, json }: CopyOptions): Promise<void> {
  const urls = { from: readUrlArgument(from, '--from'), to: readUrlArgument(to, '--to') }
  const logger = pino({ level: 'error' }, pino.destination(2))
  let isNew = false
  const open = () => named('--to', openStore(urls.to, { logger, made: () => (isNew = true) }))
  const describe = () => 'the copy was interrupted. Run it again to go on.'
  const copying = withView(urls.from, async (source) => {
    const target = await openTarget(source, open)
    const work = doLongWork({ quiet, describe }, (progress, signal) =>
      copyStore(source, target, { batchPlants, onProgress: progress.show, signal }),
    )
    return work.finally(() => target.close())
  })
  const { plants, added, checksum, tokens } = await named('--from', copying)
  const names = { from: nameDatabase(urls.from), to: nameDatabase(urls.to) }
  const what = `copied ${count(added, 'plant')} and ${count(tokens, 'token')}`
  const where = `from ${names.from} into ${names.to}${isNew ? ', made now' : ''}`
  const text = `${what} ${where}; both hold ${count(plants, 'plant')} now, SHA-256 ${checksum}`
  printResult({ ...names, made: isNew, added, tokens, plants, checksum }, text, json)
}

function explain(error: unknown): never {
  if (!(error instanceof StoreUnavailable)) throw error
  throw new StoreRefused(`the copy was cut short: ${error.message}. Run it again to go on.`, { cause: error })
}
