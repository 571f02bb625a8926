// status: shows the contents of a store and the state of its servers. It only reads.
import type { Command } from 'commander'
import { count, printResult } from '../cli/console.ts'
import { addDatabaseOptions, type DatabaseOptions, findDatabase } from '../cli/options.ts'
import type { Standby, Store } from '../store/engine.ts'
import { engineOf, withStore } from '../store/engines.ts'
import { isValidAt } from '../tokens/tokens.ts'
import { build } from '../version.ts'

const help = `
It changes nothing; a service may be running. Only the role pg_monitor can see the lag of standbys.`

export function define(command: Command): void {
  addDatabaseOptions(command).addHelpText('after', help).action(runStatus)
}

async function runStatus(options: DatabaseOptions): Promise<void> {
  const url = findDatabase(options)
  const status = await withStore(url, { mode: 'read' }, (store) => readStatus(engineOf(url).name, store))
  await printResult(status, formatStatus(status), options.json)
}

/** `version`: the version of this command, not of a running service. */
async function readStatus(engine: string, store: Store) {
  const { position: head } = await store.log.head()
  const all = await store.tokens.all()
  const tokens = { valid: all.filter(isValidAt(Date.now())).length, all: all.length }
  return { version: build, engine, store: store.id, head, tokens, ...(await store.status()) }
}

function formatStatus({ cluster, tokens, ...status }: Awaited<ReturnType<typeof readStatus>>): string {
  const rows: [name: string, fact: string][] = [
    ['version', status.version],
    ['engine', `${status.engine} ${status.engineVersion}`],
    ['store', status.store],
    ['head', count(status.head, 'plant')],
    ['size', count(status.bytes, 'byte')],
    ['tokens', `${tokens.valid} valid of ${tokens.all}`],
  ]
  if (cluster) {
    rows.push(['server', `${cluster.server}, ${cluster.role}`])
    for (const standby of cluster.standbys) rows.push(['standby', formatStandby(standby)])
  }
  return rows.map(([name, fact]) => `${name.padEnd(9)}${fact}`).join('\n')
}

function formatStandby({ name, address, state, sync, lagBytes, lagSeconds }: Standby): string {
  if (state === null) return `${name}: details require the role pg_monitor`
  const seconds = lagSeconds === null ? '' : ` (${lagSeconds.toFixed(3)} s)`
  const lag = lagBytes === null ? '' : `, ${count(lagBytes, 'byte')} behind${seconds}`
  return `${name} at ${address ?? 'localhost'}: ${state}, ${sync}${lag}`
}
