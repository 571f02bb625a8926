// A second, small server for operators: liveness, readiness, metrics. It needs no token, and listens before the store
// is open. Loaded only when ADMIN_PORT is set, as it takes a seventh of a start.
import { once } from 'node:events'
import { statfs } from 'node:fs/promises'
import { createServer, type Server } from 'node:http'
import type { AddressInfo, ListenOptions } from 'node:net'
import { problems } from '../../../schemas/problems.ts'
import type { Config } from '../../config/load-config.ts'
import { refuseAddress } from '../../config/refuse-address.ts'
import { ProblemError } from '../../http/problem-error.ts'
import { makeDescribeProblem } from '../../http/problems.ts'
import { gaugeMs } from '../../limits.ts'
import { makeInTime } from '../../runtime/with-timeout.ts'
import { engineOf } from '../../store/engines.ts'
import type { Store } from '../../store/store.ts'
import type { Health } from './health.ts'
import { Metrics } from './metrics.ts'
import type { ThreadMetrics } from './thread-metrics.ts'

type Page = { status: number; headers: Record<string, string>; text: string }

/** There is no base path here, and no problem with a type. */
const describeProblem = makeDescribeProblem('/')
const methods = ['GET', 'HEAD']
/** Headers of every answer. */
const always = { 'cache-control': 'no-store', 'x-content-type-options': 'nosniff' }

/** `droppedLines`: the number of log lines dropped so far. */
export type AdminOptions = { config: Config; health: Health; droppedLines: () => number }

/** Starts the server before the store is opened, which may take a while: `/readyz` answers `starting` until then. */
export async function openAdmin({ config, health, droppedLines }: AdminOptions) {
  const { databaseUrl, adminHost: host, adminPort: port } = config
  const engine = engineOf(databaseUrl)
  const metrics = new Metrics({ health, engine: engine.name.toLowerCase() })
  const help = 'Log lines that nobody read in time.'
  metrics.counter('plant_store_log_lines_dropped_total', help, droppedLines)
  const place = { host, port }
  const server = await startAdminServer(health, metrics, place).catch(refuseAddress('ADMIN_', place))
  return {
    metrics,
    address: server.address() as AddressInfo,
    /** Publishes the metrics of a store, once it is open. */
    show: (store: Store) => showStore(store, metrics, engine.path?.(databaseUrl)),
    close() {
      server.closeAllConnections()
      server.close()
    },
  }
}

/** Starts the admin server, which the caller closes. Rejects as `listen` does. */
export async function startAdminServer(
  health: Health,
  metrics: Metrics,
  place: ListenOptions,
): Promise<Server> {
  const pages: Record<string, () => Promise<Page>> = {
    '/livez': async () => healthPage('live', 'hung', health.isLive ? undefined : 'thread-hangs'),
    '/readyz': async () => healthPage('ready', 'unready', await health.findFault()),
    '/metrics': async () => makePage(200, metrics.contentType, await metrics.write()),
  }
  async function openPage(method: string, url: string): Promise<Page> {
    const page = pages[url.split('?', 1)[0] as string]
    if (!page) throw new ProblemError(problems.nothingHere)
    if (methods.includes(method)) return await page()
    const headers = { allow: methods.join(', ') }
    throw new ProblemError(problems.otherMethods(methods), { headers })
  }
  const server = createServer(async ({ method, url }, response) => {
    const { status, headers, text } = await openPage(String(method), String(url)).catch(describe)
    response.writeHead(status, { ...headers, ...always, 'content-length': Buffer.byteLength(text) }).end(text)
  })
  await once(server.listen(place), 'listening')
  return server
}

/** A page that says how a probe went, and why it failed, if it did. */
function healthPage(good: string, bad: string, fault: string | undefined): Page {
  const body = fault ? { status: bad, reason: fault } : { status: good }
  return makePage(fault ? 503 : 200, 'application/json', `${JSON.stringify(body)}\n`)
}

function makePage(status: number, type: string, text: string): Page {
  return { status, headers: { 'content-type': type }, text }
}

function describe(error: unknown): Page {
  const known = error instanceof ProblemError ? error : new ProblemError(problems.ours)
  const { status, problem, headers } = describeProblem(known)
  return { status, headers, text: JSON.stringify(problem) }
}

/**
 * Publishes the head of a store's log, its unsafe settings, and the disk of its file, if it has one. Values that the
 * store does not return in time are left out: the others are needed most when the store does not answer.
 */
export function showStore(store: Store, metrics: ThreadMetrics, file?: string): void {
  const { log, unsafeSettings = async () => [] } = store
  const readHead = makeInTime(() => log.head(), gaugeMs)
  const readPosition = async () => (await readHead())?.position
  metrics.gauge('plant_store_head_position', 'How many plants are in the log.', readPosition)
  const nameEpoch = async () => {
    const head = await readHead()
    return head && { [head.epochs.latest]: 1 }
  }
  metrics.gauge('plant_store_epoch_info', 'The latest epoch of the log.', nameEpoch, 'sum', 'epoch')
  metrics.gauge(
    'plant_store_unsafe_settings',
    'Settings of the database server that protect acknowledged plants and are off; the log names them at the start.',
    makeInTime(async () => (await unsafeSettings()).length, gaugeMs),
  )
  if (file === undefined) return
  const disk = makeInTime(() => statfs(file), gaugeMs)
  const toBytes = (blocks: 'bavail' | 'blocks') => async () => {
    const found = await disk()
    return found && found[blocks] * found.bsize
  }
  const room = "Room left on the disk of the database's file."
  metrics.gauge('plant_store_disk_free_bytes', room, toBytes('bavail'))
  metrics.gauge('plant_store_disk_bytes', "Size of the disk of the database's file.", toBytes('blocks'))
}
