// status: shows what a store holds, and which services and commands use it.
import type { Command } from 'commander'
import { loadDatabaseUrl } from '../../config/load-config.ts'
import { readStatus } from '../../maintenance/status/read-status.ts'
import { formatStatus } from '../../maintenance/status/status-text.ts'
import { printResult } from '../console/output.ts'
import { addDatabaseOptions, type DatabaseOptions } from '../setting-options.ts'

const help = `
It only reads, and may be used beside a running service. On SQLite a service is found by its locks (on Linux, and not across
containers), on PostgreSQL by its sessions. The lag of standbys is visible to the role pg_monitor.`

export function define(command: Command): void {
  addDatabaseOptions(command)
    .addHelpText('after', help)
    .action(async ({ databaseUrl, json }: DatabaseOptions) => {
      const status = await readStatus(loadDatabaseUrl(databaseUrl))
      printResult(status, formatStatus(status), json)
    })
}
