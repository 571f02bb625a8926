// status: shows what a store holds, and which services and commands use it. It only reads.
import type { Command } from 'commander'
import { count, printResult, separate, silent } from '../cli/console.ts'
import { addDatabaseOptions, type DatabaseOptions, findDatabase } from '../cli/options.ts'
import type { ClusterStatus, ServiceStatus, Standby, Store } from '../store/engine.ts'
import { engineOf, withStore } from '../store/engines.ts'
import { build } from '../version.ts'

const help = `
It only reads, and may be used beside a running service. On SQLite a service is found by its locks (on Linux, and not across
containers), on PostgreSQL by its sessions. The lag of standbys is visible to the role pg_monitor.`

type Status = Awaited<ReturnType<typeof readStatus>>

export function define(command: Command): void {
  addDatabaseOptions(command)
    .addHelpText('after', help)
    .action(async (options: DatabaseOptions) => {
      const url = findDatabase(options)
      const read = (store: Store) => readStatus(engineOf(url).name, store)
      const status = await withStore(url, { mode: 'read', logger: silent }, read)
      await printResult(status, await formatStatus(status), options.json)
    })
}

/** `version`: of this command, not of a running service. */
async function readStatus(engine: string, store: Store, now = Date.now()) {
  const tokens = await store.tokens.all()
  const current = tokens.filter(({ revokedAt }) => revokedAt === null)
  const active = current.filter(({ expiresAt }) => expiresAt === null || expiresAt > now).length
  return {
    version: build,
    engine,
    store: store.id,
    head: (await store.log.head()).position,
    tokens: { active, expired: current.length - active, revoked: tokens.length - current.length },
    ...(await store.status()),
  }
}

async function formatStatus({ cluster, tokens, ...status }: Status): Promise<string> {
  return [
    line('version', status.version),
    line('engine', `${status.engine} ${status.engineVersion}`),
    line('store', status.store),
    line('head', count(status.head, 'plant')),
    line('size', formatBytes(status.bytes)),
    line('tokens', `${tokens.active} active, ${tokens.expired} expired, ${tokens.revoked} revoked`),
    ...(cluster ? await formatCluster(cluster) : []),
    line('service', formatService(status.service)),
  ].join('\n')
}

async function formatCluster({ server, role, standbys, unsafe }: ClusterStatus): Promise<string[]> {
  const { describeUnsafe } = await import('../store/postgres/postgres-status.ts')
  return [
    line('server', `${server}, ${role}`),
    ...standbys.map((standby) => line('standby', formatStandby(standby))),
    ...unsafe.map((name) => line('warning', describeUnsafe(name))),
  ]
}

function line(name: string, fact: string): string {
  return `${name.padEnd(9)}${fact}`
}

function formatStandby({ name, address, state, sync, lagBytes, lagSeconds }: Standby): string {
  if (state === null) return `${name}: only the role pg_monitor may see more`
  const seconds = lagSeconds === null ? '' : ` (${lagSeconds.toFixed(3)} s)`
  return `${name} at ${address ?? 'localhost'}: ${state}, ${sync}, ${formatBytes(lagBytes ?? 0)} behind${seconds}`
}

function formatService({ running, by }: ServiceStatus): string {
  if (running === null) return 'unknown: it cannot be seen from here'
  const users = by.join(', ')
  if (running) return users ? `running: ${users}` : 'running'
  return users ? `not running; in use by ${users}` : 'not running'
}

function formatBytes(bytes: number): string {
  return bytes < 1e5 ? `${separate(bytes)} bytes` : `${(bytes / 1e6).toFixed(1)} MB`
}
