// Traces: a span per request, sent in batches by OTLP over HTTP. Loaded only when traces are on.
import { ROOT_CONTEXT } from '@opentelemetry/api'
import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import {
  createOtlpHttpExportDelegate,
  httpAgentFactoryFromOptions,
} from '@opentelemetry/otlp-exporter-base/node-http'
import { RandomIdGenerator, SamplingDecision, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace'
import { LRUCache } from 'lru-cache'
import type { TraceOptions } from '../config/trace-settings.ts'
import type { Exchange } from '../http/connection/exchange.ts'
import { readTrace, type Trace } from '../http/connection/request-ids.ts'
import { traceFlushMs } from '../limits.ts'
import type { ServiceLog } from '../logging/open-log.ts'
import { Outage } from '../logging/outage.ts'
import type { Meter } from '../runtime/meter.ts'
import { withTimeout } from '../runtime/with-timeout.ts'
import { version } from '../version.ts'
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
  readonly #ids = new RandomIdGenerator()
  readonly #isSampled: ReturnType<typeof makeSampler>
  readonly #exporter: ReturnType<typeof makeExporter>
  readonly #origin: Origin
  readonly #counts = { exported: 0, dropped: 0 }
  #batch: SpanBatch
  #unsent = 0
  #sending = Promise.resolve()
  #timer: NodeJS.Timeout | undefined
  #isFailing = false

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
    const counts = this.#counts
    meter.counter('plant_store_spans_exported_total', 'Spans that were sent.', () => counts.exported)
    meter.counter('plant_store_spans_dropped_total', 'Spans that were not sent.', () => counts.dropped)
  }

  /** Begins the span of a request with the given `traceparent`; bit 0 of its flags: sampled. */
  readonly begin = (traceparent: string | string[] | undefined): Trace => {
    const parent = readTrace(traceparent) ?? null
    const traceId = parent?.traceId ?? this.#ids.generateTraceId()
    const spanId = this.#ids.generateSpanId()
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
  const sampler = new TraceIdRatioBasedSampler(share)
  return (traceId: string, parent: Trace | null): boolean => {
    if (parent && isParentBased) return parent.flags % 2 === 1
    return sampler.shouldSample(ROOT_CONTEXT, traceId).decision === SamplingDecision.RECORD_AND_SAMPLED
  }
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
