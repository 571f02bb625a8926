// Traces: a span per request, sent in batches by OTLP over HTTP. Loaded only when traces are on.
import { randomBytes } from 'node:crypto'
import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import {
  createOtlpHttpExportDelegate,
  httpAgentFactoryFromOptions,
} from '@opentelemetry/otlp-exporter-base/node-http'
import { LRUCache } from 'lru-cache'
import type { TraceOptions } from '../config/trace-settings.ts'
import type { Exchange } from '../http/connection/exchange.ts'
import { readTrace, type Trace } from '../http/connection/request-ids.ts'
import { traceFlushMs } from '../limits.ts'
import type { ServiceLog } from '../logging/open-log.ts'
import { Outage } from '../logging/outage.ts'
import type { Meter } from '../runtime/meter.ts'
import { version } from '../runtime/version.ts'
import { withTimeout } from '../runtime/with-timeout.ts'
import { type Origin, SpanBatch } from './spans.ts'
import type { Shared } from './threads/shared.ts'

type Surroundings = Pick<ServiceLog, 'logger' | 'mask'> & Shared & { meter: Meter }

/** The `telemetry.sdk` attributes: the spans are not made by OpenTelemetry's own SDK. */
const sdk = {
  'telemetry.sdk.language': 'nodejs',
  'telemetry.sdk.name': 'plant-store',
  'telemetry.sdk.version': version,
}

const late = { code: ExportResultCode.FAILED, error: new Error('timed out') }

export class Traces {
  readonly #options: TraceOptions
  readonly #logger: ServiceLog['logger']
  readonly #outage: Outage
  readonly #isSampled: ReturnType<typeof makeSampler>
  readonly #exporter: ReturnType<typeof makeExporter>
  readonly #origin: Origin
  readonly #counts = { exported: 0, dropped: 0 }
  #batch: SpanBatch
  #unsent = 0
  #sending = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #isFailing = false
  /** Random digits for ids, made many at once: made for each request, they would cost more than its log line. */
  #digits = ''

  constructor(options: TraceOptions, { logger, meter, mask, instanceId, thread }: Surroundings) {
    this.#options = options
    this.#logger = logger
    this.#outage = new Outage(logger, { gone: 'traces cannot be sent', back: 'traces are sent again' })
    this.#isSampled = makeSampler(options)
    this.#exporter = makeExporter(options)
    const masked = new LRUCache<string, string>({ max: 1000, memoMethod: mask })
    // Most texts repeat, so masking is memoized.
    const clean = (text: string) => (text.length > 256 ? mask(text) : masked.memo(text))
    const resource = { ...sdk, 'service.instance.id': instanceId, ...options.resource }
    this.#origin = { resource, thread, clean }
    this.#batch = new SpanBatch(this.#origin)
    meter.counter('plant_store_spans_exported_total', 'Spans that were sent.', () => this.#counts.exported)
    meter.counter('plant_store_spans_dropped_total', 'Spans that were not sent.', () => this.#counts.dropped)
  }

  /** Begins the span of a request with the given `traceparent`; bit 0 of its flags: sampled. */
  readonly begin = (traceparent: string | string[] | undefined): Trace => {
    const parent = readTrace(traceparent) ?? null
    if (this.#digits.length === 0) this.#digits = randomBytes(24 * 100).toString('hex')
    const spanId = this.#digits.slice(0, 16)
    const traceId = parent?.traceId ?? this.#digits.slice(16, 48)
    this.#digits = this.#digits.slice(48)
    return { traceId, spanId, flags: this.#isSampled(traceId, parent) ? 1 : 0, parent }
  }

  /** Adds the span of a request that has ended. */
  add(exchange: Exchange): void {
    if (!exchange.trace?.flags) return
    const { maxSpans, spanBatch, spanDelayMs } = this.#options
    if (this.#unsent >= maxSpans) {
      this.#counts.dropped++
      return
    }
    this.#unsent++
    this.#timer ??= setTimeout(() => this.#flush(), spanDelayMs).unref()
    this.#batch.add(exchange)
    if (this.#batch.count >= spanBatch) void this.#flush()
  }

  /** Sends the remaining spans. */
  async end(): Promise<void> {
    if (!this.#isFailing) await withTimeout(this.#flush(), traceFlushMs, () => {})
    if (this.#unsent > 0) this.#logger.warn({ spans: this.#unsent }, 'spans were not sent before the end')
  }

  /** Sends a batch, which is full or old, once the one before it is settled. */
  #flush(): Promise<void> {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#batch.count > 0) this.#sending = this.#send(this.#batch, this.#sending)
    this.#batch = new SpanBatch(this.#origin)
    return this.#sending
  }

  async #send(batch: SpanBatch, previous: Promise<void>): Promise<void> {
    await previous
    const sent = new Promise<ExportResult>((resolve) => this.#exporter.export(batch, resolve))
    const { code, error } = await withTimeout(sent, this.#options.spanExportMs, () => late)
    this.#unsent -= batch.count
    this.#isFailing = code !== ExportResultCode.SUCCESS
    this.#counts[this.#isFailing ? 'dropped' : 'exported'] += batch.count
    // A collector's answer may repeat what it was sent: log its status alone.
    if (this.#isFailing) this.#outage.reportFailure(String(Object(error).code ?? error?.message))
    else this.#outage.reportRecovery()
  }
}

function makeSampler({ traceSampler, traceRatio }: TraceOptions) {
  const isParentBased = traceSampler.startsWith('parentbased')
  const share = traceSampler.endsWith('ratio') ? traceRatio : Number(traceSampler.endsWith('on'))
  return (traceId: string, parent: Trace | null): boolean =>
    parent && isParentBased ? parent.flags % 2 === 1 : foldId(traceId) < share * 2 ** 32
}

/** XORs the four words of a trace id, as OpenTelemetry's SDK for JavaScript does to compare it with the ratio. */
function foldId(traceId: string): number {
  let folded = 0
  for (let at = 0; at < 32; at++) {
    const code = traceId.charCodeAt(at)
    // The operator takes the count modulo 32, so that each word begins at its highest digit.
    folded ^= (code < 58 ? code - 48 : code - 87) << (28 - 4 * at)
  }
  return folded >>> 0
}

function makeExporter({ url, headers, timeoutMs, compression = 'none', ca }: TraceOptions) {
  const options = {
    ...{ url, timeoutMillis: timeoutMs, compression, concurrencyLimit: 30 },
    headers: async () => ({ ...headers, 'Content-Type': 'application/x-protobuf' }),
    agentFactory: httpAgentFactoryFromOptions({ keepAlive: true, ...(ca && { ca }) }),
  }
  const serializer = { serializeRequest: (batch: SpanBatch) => batch.end(), deserializeResponse: () => ({}) }
  // The exporter's own metrics are not used.
  const metrics = { name: 'span' as const, countItems: ({ count }: SpanBatch) => count }
  return createOtlpHttpExportDelegate(options, serializer, '', metrics, undefined)
}
