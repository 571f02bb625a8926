// verify: checks a whole store against the service's promises, and changes nothing without --repair.
import type { Command } from 'commander'
import pino from 'pino'
import { loadDatabaseUrl } from '../../config/load-config.ts'
import { UsageError } from '../../config/values.ts'
import { invert } from '../../maintenance/verify/check-log.ts'
import { describeFault } from '../../maintenance/verify/faults.ts'
import { type VerifyReport, verifyStore } from '../../maintenance/verify/verify-store.ts'
import { count, separate } from '../../runtime/count.ts'
import { openStore } from '../../store/engines.ts'
import { StoreRefused } from '../../store/errors.ts'
import { migrations } from '../../store/format/migrations.ts'
import { doLongWork } from '../console/long-work.ts'
import { printResult } from '../console/output.ts'
import { startProgress } from '../console/progress.ts'
import { addWorkOptions, type WorkOptions } from '../setting-options.ts'
import { named, readUrlArgument } from '../url-argument.ts'

type Options = WorkOptions & { repair?: true }
/** Numbers of checksums and segments that a repair added. */
type Added = { repaired: number; segments: number }

const help = `
URL is a database URL, env:NAME for one in an environment variable, or @FILE for one in a file, which hide a password from
ps. A service may run on the database meanwhile. Checked are: the schema, SQLite's own integrity check, that the log has no
gaps, the checksum of every row, that every item is a valid plant in its stored format, that ids are unique, that heads,
epochs and segments agree with the log, the id of the store, and hashes and scopes of tokens. Where a page of the file is
damaged, the plants that cannot be read are named, and all others are checked. The SHA-256 is the one that plant-store
copy prints.

If there are faults, the first ten are shown, and the exit code is 1. Rows written by version 1.0.0 have no checksum, and
count as unchecked; if there are no faults, --repair adds their checksums, and the segments that long lists are read
from.`

export function define(command: Command): void {
  command
    .argument('[url]', 'the database, instead of --database-url: a URL, env:NAME or @FILE')
    .option('--repair', 'add missing checksums and segments')
  addWorkOptions(command)
    .addHelpText('after', help)
    .action(async (url: string | undefined, options: Options) => {
      const { databaseUrl } = options
      if (url === undefined) return runVerify(loadDatabaseUrl(databaseUrl), options)
      if (databaseUrl !== undefined)
        throw new UsageError('URL and --database-url name two databases: give one')
      return named('URL', runVerify(readUrlArgument(url, 'URL'), options))
    })
}

async function runVerify(url: string, { repair, json, quiet }: Options): Promise<void> {
  // It only reads: a signal may end it at any moment, as signals do.
  const progress = startProgress({ quiet })
  const checked = await verifyStore(url, { onProgress: progress.show })
  progress.end()
  const report = repair && checked.faultCount === 0 ? await runRepair(url, checked, quiet) : checked
  const faults = report.faults.map(({ position = null, detail }) => ({ position, detail }))
  printResult({ repaired: 0, segments: 0, ...report, faults }, formatReport(report), json)
  if (report.faultCount > 0) process.exitCode = 1
}

function runRepair(url: string, checked: VerifyReport, quiet: true | undefined) {
  /* c8 ignore next: an interrupted process reports no coverage */
  const describe = () => 'interrupted: the repair is incomplete. Run it again'
  return doLongWork({ quiet, describe }, async (_, signal) => {
    const logger = pino({ level: 'error' }, pino.destination(2))
    const store = await openStore(url, { logger, mustExist: true })
    try {
      if (!store.upkeep) throw new StoreRefused(`${checked.engine} has nothing to be repaired`)
      const added = await store.upkeep.repair(checked.head, signal)
      // It was migrated to be repaired.
      const schemaVersion = Math.max(checked.schemaVersion, migrations.length)
      return { ...checked, ...added, schemaVersion }
    } finally {
      await store.close()
    }
  })
}

function formatReport(report: VerifyReport & Partial<Added>): string {
  const { engine, schemaVersion, plants, unchecked, checksum, faults, faultCount } = report
  const { repaired = 0, segments = 0 } = report
  const lines = [
    `${engine}, schema version ${schemaVersion}: ${count(plants, 'plant')}, SHA-256 ${checksum ?? 'unknown'}`,
    ...faults.map(describeFault),
  ]
  if (faultCount > faults.length) lines.push(`and ${count(faultCount - faults.length, 'more fault')}`)
  if (checksum === null) lines.push(describeReadable(report))
  if (repaired > 0) lines.push(`${count(repaired, 'plant')} had no checksum and got one`)
  else if (unchecked > 0)
    lines.push(`${count(unchecked, 'plant')} without a checksum: plant-store verify --repair adds it`)
  if (segments > 0) lines.push(`segments that were missing and are there now: ${separate(segments)}`)
  lines.push(faultCount === 0 ? 'no faults' : count(faultCount, 'fault'))
  return lines.join('\n')
}

/** Says which plants of a damaged store can be read. */
function describeReadable({ unread, head }: VerifyReport): string {
  const spans = invert(unread, head).map(({ first, last }) =>
    first === last ? `${first}` : `${first} to ${last}`,
  )
  return `plants that can be read: ${spans.join(', ') || 'none'}`
}
