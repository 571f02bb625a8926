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
import type { Shared } from './shared.ts'
import { SpanBatch } from './spans.ts'

type Surroundings = Pick<ServiceLog, 'logger' | 'mask'> & Shared & { meter: Meter }

/** The `telemetry.sdk` attributes: the spans are not made by OpenTelemetry's own SDK. */
const sdk = {
  'telemetry.sdk.language': 'nodejs',
  'telemetry.sdk.name': 'plant-store',
  'telemetry.sdk.version': version,
}

const late = { code: ExportResultCode.FAILED, error: new Error('timed out') }

/** Makes the traces of a thread. */
export function makeTraces(options: TraceOptions, { logger, meter, mask, instanceId, thread }: Surroundings) {
  const { maxSpans, spanBatch, spanDelayMs, spanExportMs } = options
  const outage = new Outage(logger, { gone: 'traces cannot be sent', back: 'traces are sent again' })
  const exporter = makeExporter(options)
  const resource = { ...sdk, 'service.instance.id': instanceId, ...options.resource }
  const origin = { resource, thread, clean: makeClean(mask) }
  const counts = { exported: 0, dropped: 0 }
  let batch = new SpanBatch(origin)
  let unsent = 0
  let sending = Promise.resolve()
  let timer: NodeJS.Timeout | undefined
  let isFailing = false
  meter.counter('plant_store_spans_exported_total', 'Spans that were sent.', () => counts.exported)
  meter.counter('plant_store_spans_dropped_total', 'Spans that were not sent.', () => counts.dropped)

  /** Sends a batch, which is full or old, once the one before it is settled. */
  function flush(): Promise<void> {
    clearTimeout(timer)
    if (batch.count > 0) sending = send(batch, sending)
    batch = new SpanBatch(origin)
    return sending
  }

  async function send(full: SpanBatch, previous: Promise<void>): Promise<void> {
    await previous
    const sent = new Promise<ExportResult>((resolve) => exporter.export(full, resolve))
    const { code, error } = await withTimeout(sent, spanExportMs, () => late)
    unsent -= full.count
    isFailing = code !== ExportResultCode.SUCCESS
    counts[isFailing ? 'dropped' : 'exported'] += full.count
    // A collector's answer may repeat what it was sent: log its status alone.
    if (isFailing) outage.reportFailure(String(Object(error).code ?? error?.message))
    else outage.reportRecovery()
  }

  return {
    begin: makeBegin(options),
    /** Adds the span of a request that has ended. */
    add(exchange: Exchange): void {
      if (!exchange.trace?.flags) return
      if (unsent >= maxSpans) {
        counts.dropped++
        return
      }
      unsent++
      if (batch.count === 0) timer = setTimeout(flush, spanDelayMs).unref()
      batch.add(exchange)
      if (batch.count >= spanBatch) void flush()
    },
    /** Sends the remaining spans. */
    async end(): Promise<void> {
      if (!isFailing) await withTimeout(flush(), traceFlushMs, () => {})
      if (unsent > 0) logger.warn({ spans: unsent }, 'spans were not sent before the end')
    },
  }
}

/** Makes the function that masks a text. Most texts repeat, so masking is memoized. */
function makeClean(mask: (text: string) => string) {
  const masked = new LRUCache<string, string>({ max: 1000, memoMethod: mask })
  return (text: string) => (text.length > 256 ? mask(text) : masked.memo(text))
}

/** Makes the function that begins the span of a request with the given `traceparent`. */
function makeBegin({ traceSampler, traceRatio }: TraceOptions) {
  const isParentBased = traceSampler.startsWith('parentbased')
  const share = traceSampler.endsWith('ratio') ? traceRatio : Number(traceSampler.endsWith('on'))
  /** Random digits for ids, made many at once: made for each request, they would cost more than its log line. */
  let digits = ''
  return (traceparent: string | string[] | undefined): Trace => {
    const parent = readTrace(traceparent) ?? null
    if (digits.length === 0) digits = randomBytes(24 * 100).toString('hex')
    const spanId = digits.slice(0, 16)
    const traceId = parent?.traceId ?? digits.slice(16, 48)
    digits = digits.slice(48)
    const isSampled = parent && isParentBased ? parent.flags % 2 === 1 : foldId(traceId) < share * 2 ** 32
    // Bit 0: sampled.
    return { traceId, spanId, flags: isSampled ? 1 : 0, parent }
  }
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
