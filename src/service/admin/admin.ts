// A second, small app for operators: liveness, readiness, metrics. It needs no token, and listens before the store is
// open. Loaded only when ADMIN_PORT is set, as it takes a seventh of a start.
import { statfs } from 'node:fs/promises'
import { isIP } from 'node:net'
import type { onRequestHookHandler } from 'fastify'
import type { Logger } from 'pino'
import type { Config } from '../../config/load-config.ts'
import { refuseAddress } from '../../config/refuse-address.ts'
import { sendAnswer } from '../../http/answer.ts'
import { invalid } from '../../http/problem-error.ts'
import { gaugeMs } from '../../limits.ts'
import { makeInTime } from '../../runtime/with-timeout.ts'
import { servePath } from '../../site/documents.ts'
import type { Store } from '../../store/engine.ts'
import { engineOf } from '../../store/engines.ts'
import { makeParts, makeServer } from '../app.ts'
import { listen } from '../listen.ts'
import type { Health } from './health.ts'
import { Metrics } from './metrics.ts'
import type { ThreadMetrics } from './thread-metrics.ts'

/** `droppedLines`: the number of log lines dropped so far. */
export type AdminOptions = { config: Config; logger: Logger; health: Health; droppedLines: () => number }

/** Starts the server before the store is opened, which may take a while: `/readyz` answers `starting` until then. */
export async function openAdmin({ config, logger, health, droppedLines }: AdminOptions) {
  const { databaseUrl, adminHost: host, adminPort: port = 0 } = config
  const engine = engineOf(databaseUrl)
  const metrics = new Metrics({ health, engine: engine.name.toLowerCase() })
  const help = 'Log lines that nobody read in time, or that could not be written.'
  metrics.counter('plant_store_log_lines_dropped_total', help, droppedLines)
  const app = buildAdmin({ config, logger, health }, metrics)
  const place = { host, port }
  return {
    metrics,
    address: await listen(app, place).catch(refuseAddress('ADMIN_', place)),
    /** Publishes the metrics of a store, once it is open. */
    show: (store: Store) => showStore(store, metrics, engine.path?.(databaseUrl)),
    async close() {
      app.server.closeAllConnections()
      await app.close()
    },
  }
}

/** Builds the app, whose problems, headers and time-outs are those of the service. */
function buildAdmin({ config, logger, health }: Omit<AdminOptions, 'droppedLines'>, metrics: Metrics) {
  const own = { ...config, corsOrigin: false as const, trustProxy: false, oidcIssuer: undefined }
  const parts = makeParts({ config: own, logger })
  const app = makeServer(own, parts)
  app.addHook('onRequest', refuseForeignNames(config.adminHost))
  app.addHook('onRequest', parts.guard.requireRoute)
  function serve(url: string, type: string, answer: () => Promise<{ status?: number; text: string }>) {
    servePath(app, url, async (_request, reply) => {
      const { status = 200, text } = await answer()
      sendAnswer(reply.code(status).hijack(), { 'content-type': type, 'cache-control': 'no-store' }, text)
      return reply
    })
  }
  const json = 'application/json'
  serve('/livez', json, async () => describe('live', 'hung', health.isLive ? undefined : 'thread-hangs'))
  serve('/readyz', json, async () => describe('ready', 'unready', await health.findFault()))
  serve('/metrics', metrics.contentType, async () => ({ text: await metrics.write() }))
  return app
}

/** Says how a probe went, and why it failed, if it did. */
function describe(good: string, bad: string, reason: string | undefined) {
  const body = reason ? { status: bad, reason } : { status: good }
  return { status: reason ? 503 : 200, text: `${JSON.stringify(body)}\n` }
}

/**
 * Refuses a name of the domain name system, unless it is ADMIN_HOST, on a connection that does not leave the machine: a
 * page in a browser there could have its own name lead to this server, and read it (DNS rebinding). A name without a dot
 * is nobody's on the internet.
 */
function refuseForeignNames(adminHost: string): onRequestHookHandler {
  const ownName = adminHost.toLowerCase()
  return ({ hostname, socket }, _reply, done) => {
    const name = hostname.toLowerCase()
    const isOwn = !name.includes('.') || /^\[|\.localhost$/.test(name) || isIP(name) > 0 || name === ownName
    const isLocal = /^(::ffff:)?127\.|^::1$/.test(String(socket.localAddress))
    const detail = 'must be an address, localhost or ADMIN_HOST'
    done(isOwn || !isLocal ? undefined : invalid([{ code: 'format', detail, parameter: 'Host' }]))
  }
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
