// Traces: one span for each request, sent in batches by OTLP over HTTP. Loaded where traces are on.
import { randomBytes } from 'node:crypto'
import { ROOT_CONTEXT } from '@opentelemetry/api'
import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import {
  createOtlpHttpExportDelegate,
  httpAgentFactoryFromOptions,
} from '@opentelemetry/otlp-exporter-base/node-http'
import { SamplingDecision, TraceIdRatioBasedSampler } from '@opentelemetry/sdk-trace'
import { LRUCache } from 'lru-cache'
import type { Logger } from 'pino'
import type { TraceOptions } from '../config/trace-settings.ts'
import type { Exchange } from '../http/connection/exchange.ts'
import { readTrace, type Trace } from '../http/connection/request-ids.ts'
import { traceFlushMs } from '../limits.ts'
import { Outage } from '../logging/outage.ts'
import type { Meter } from '../runtime/meter.ts'
import { withTimeout } from '../runtime/with-timeout.ts'
import { version } from '../version.ts'
import { type Origin, SpanBatch } from './spans.ts'

/** `mask` takes secrets out of a text; `thread`: whose spans these are. */
type Options = {
  logger: Logger
  meter: Meter
  mask: (text: string) => string
  instanceId: string
  thread: number
}

/** What made the spans: not OpenTelemetry's own SDK. */
const sdk = {
  'telemetry.sdk.language': 'nodejs',
  'telemetry.sdk.name': 'plant-store',
  'telemetry.sdk.version': version,
}

/** `begin` gives a request its span, `add` takes one that has ended, `end` sends those that are left. */
export function makeTraces(options: TraceOptions, { logger, meter, mask, instanceId, thread }: Options) {
  const outage = new Outage(logger, { gone: 'traces cannot be sent', back: 'traces are sent again' })
  const makeId = makeIds()
  const isSampled = makeSampler(options)
  const masked = new LRUCache<string, string>({ max: 1000, memoMethod: mask })
  const queue = makeQueue(options, settle, {
    thread,
    // Most texts are like others.
    clean: (text: string) => (text.length > 256 ? mask(text) : masked.memo(text)),
    resource: { ...sdk, 'service.instance.id': instanceId, ...options.resource },
  })
  const counts = { exported: 0, dropped: 0 }
  let originMs = performance.timeOrigin
  let unsent = 0
  let isFailing = false
  meter.counter('plant_store_spans_exported_total', 'Spans that were sent.', () => counts.exported)
  meter.counter('plant_store_spans_dropped_total', 'Spans that were not sent.', () => counts.dropped)

  function settle(spans: number, { code, error }: ExportResult): void {
    unsent -= spans
    isFailing = code !== ExportResultCode.SUCCESS
    counts[isFailing ? 'dropped' : 'exported'] += spans
    // The answer of a collector may repeat what it was sent: its status is enough.
    if (isFailing)
      outage.reportFailure(String((error as { code?: unknown } | undefined)?.code ?? error?.message))
    else outage.reportRecovery()
  }

  return {
    begin(traceparent: string | string[] | undefined): Trace {
      const parent = readTrace(traceparent) ?? null
      const traceId = parent?.traceId ?? makeId(32)
      return { traceId, spanId: makeId(16), flags: isSampled(traceId, parent) ? 1 : 0, parent }
    },
    add(exchange: Exchange): void {
      const { trace } = exchange
      if (!trace?.flags) return
      if (unsent >= options.maxSpans) {
        counts.dropped++
        return
      }
      unsent++
      const nowMs = performance.now()
      // The clock of the machine may have been set.
      if (Math.abs(Date.now() - originMs - nowMs) > 2) originMs = Date.now() - nowMs
      queue.add(exchange, trace, originMs + nowMs)
    },
    async end(): Promise<void> {
      if (!isFailing) await withTimeout(queue.flush(), traceFlushMs, () => {})
      if (unsent > 0) logger.warn({ spans: unsent }, 'spans were not sent before the end')
    },
  }
}

/** A batch is sent when it is full or old, and when the one before it is settled. */
function makeQueue(
  options: TraceOptions,
  settle: (spans: number, result: ExportResult) => void,
  origin: Origin,
) {
  const exporter = makeExporter(options)
  const late = { code: ExportResultCode.FAILED, error: new Error('timed out') }
  let batch = new SpanBatch(origin)
  let sending = Promise.resolve()
  let timer: NodeJS.Timeout | undefined

  async function send(full: SpanBatch, previous: Promise<void>): Promise<void> {
    await previous
    const sent = new Promise<ExportResult>((resolve) => exporter.export(full, resolve))
    settle(full.count, await withTimeout(sent, options.spanExportMs, () => late))
  }

  function flush(): Promise<void> {
    clearTimeout(timer)
    timer = undefined
    if (batch.count > 0) sending = send(batch, sending)
    batch = new SpanBatch(origin)
    return sending
  }

  return {
    flush,
    add(...[exchange, trace, endMs]: Parameters<SpanBatch['add']>): void {
      timer ??= setTimeout(flush, options.spanDelayMs).unref()
      batch.add(exchange, trace, endMs)
      if (batch.count >= options.spanBatch) void flush()
    },
  }
}

/** Makes random hexadecimal digits for ids (W3C Trace Context, section 3.2.2), many at once. */
function makeIds(): (length: number) => string {
  let digits = ''
  return (length) => {
    if (digits.length < length) digits = randomBytes(2048).toString('hex')
    const id = digits.slice(0, length)
    digits = digits.slice(length)
    return id
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
  // What it would measure of itself goes nowhere.
  const metrics = { name: 'span' as const, countItems: ({ count }: SpanBatch) => count }
  return createOtlpHttpExportDelegate(options, serializer, '', metrics, undefined)
}
