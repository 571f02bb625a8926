// Formats the status of a store: one line per fact.

import { count, separate } from '../../runtime/count.ts'
import { describeLoss, describeUnsafe } from '../../store/postgres/postgres-status.ts'
import type { Standby } from '../../store/status.ts'
import type { StoreStatus } from './read-status.ts'

export function formatStatus(status: StoreStatus): string {
  const { version, engine, engineVersion, schemaVersion, store, head, epochs, bytes, tokens, cluster } =
    status
  const line = (name: string, fact: string) => `${name.padEnd(9)}${fact}`
  return [
    line('version', version),
    line('engine', `${engine} ${engineVersion}, schema version ${schemaVersion}`),
    line('store', store),
    line('head', `${count(head, 'plant')}, ${count(epochs, 'epoch')}`),
    line('size', formatBytes(bytes)),
    line('tokens', `${tokens.active} active, ${tokens.expired} expired, ${tokens.revoked} revoked`),
    cluster ? line('server', `${cluster.server}, ${cluster.role}`) : [],
    (cluster?.standbys ?? []).map((standby) => line('standby', formatStandby(standby))),
    (cluster?.unsafe ?? []).map((name) => line('warning', describeUnsafe(name))),
    cluster?.loss ? line('warning', `${describeLoss(cluster.loss)} (${cluster.loss.at})`) : [],
    line('service', formatService(status)),
  ]
    .flat()
    .join('\n')
}

function formatStandby({ name, address, state, sync, lagBytes, lagSeconds }: Standby): string {
  if (state === null) return `${name}: only the role pg_monitor may see more`
  const seconds = lagSeconds === null ? '' : ` (${lagSeconds.toFixed(3)} s)`
  return `${name} at ${address ?? 'localhost'}: ${state}, ${sync}, ${formatBytes(lagBytes ?? 0)} behind${seconds}`
}

function formatService({ service: { running, by } }: StoreStatus): string {
  if (running === null) return 'not known: it cannot be told from here'
  const others = by.length > 0 ? `: ${by.join(', ')}` : ''
  return running ? `running${others}` : `not running${others && `; in use by${others.slice(1)}`}`
}

function formatBytes(bytes: number): string {
  return bytes < 1e5 ? `${separate(bytes)} bytes` : `${(bytes / 1e6).toFixed(1)} MB`
}
