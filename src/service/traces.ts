// Traces: one span for each request, by the stable HTTP conventions of OpenTelemetry, handed to its processor, which sends
// them in batches. Loaded where traces are on.
import { type Attributes, ROOT_CONTEXT, SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { type ExportResult, ExportResultCode, TraceState } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources'
import * as sdk from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'
import type { TraceOptions } from '../config/trace-settings.ts'
import type { Exchange } from '../http/connection/exchange.ts'
import { readTrace, type Trace } from '../http/connection/request-ids.ts'
import { traceFlushMs } from '../limits.ts'
import { Outage } from '../logging/outage.ts'
import type { Meter } from '../runtime/meter.ts'
import { withTimeout } from '../runtime/with-timeout.ts'

/** `mask` takes secrets out of a text; `thread`: whose spans these are. */
type Origin = { mask: (text: string) => string; instanceId: string; thread: number }
type Options = Origin & { logger: Logger; meter: Meter }

/** `begin` gives a request its span, `add` takes one that has ended, `end` sends those that are left. */
export function makeTraces(options: TraceOptions, { logger, meter, ...origin }: Options) {
  const outage = new Outage(logger, { gone: 'traces cannot be sent', back: 'traces are sent again' })
  const ids = new sdk.RandomIdGenerator()
  const isSampled = makeSampler(options)
  const processor = makeProcessor(options, makeBuilder(options, origin), settle)
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
      const traceId = parent?.traceId ?? ids.generateTraceId()
      return { traceId, spanId: ids.generateSpanId(), flags: isSampled(traceId, parent) ? 1 : 0, parent }
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
      processor.onEnd(note(exchange, trace, originMs + nowMs) as never)
    },
    async end(): Promise<void> {
      if (!isFailing) await withTimeout(processor.shutdown(), traceFlushMs, () => {})
      if (unsent > 0) logger.warn({ spans: unsent }, 'spans were not sent before the end')
    },
  }
}

function makeSampler({
  traceSampler,
  traceRatio,
}: TraceOptions): (traceId: string, parent: Trace | null) => boolean {
  const share = traceSampler.endsWith('ratio') ? traceRatio : Number(traceSampler.endsWith('on'))
  const root = new sdk.TraceIdRatioBasedSampler(share)
  const isParentBased = traceSampler.startsWith('parentbased')
  return (traceId, parent) =>
    parent && isParentBased
      ? parent.flags % 2 === 1
      : root.shouldSample(ROOT_CONTEXT, traceId).decision === sdk.SamplingDecision.RECORD_AND_SAMPLED
}

function makeProcessor(
  { url, headers, timeoutMs, compression, ca, ...batch }: TraceOptions,
  build: (ended: Ended) => sdk.ReadableSpan,
  settle: (spans: number, result: ExportResult) => void,
): sdk.BatchSpanProcessor {
  // The exporter would add what it finds there to what it is given.
  for (const name in process.env) if (name.startsWith('OTEL_EXPORTER_OTLP_')) delete process.env[name]
  const exporter = new OTLPTraceExporter({
    ...{ url, headers, timeoutMillis: timeoutMs, compression: compression as never },
    httpAgentOptions: { keepAlive: true, ...(ca && { ca }) },
  })
  const own: sdk.SpanExporter = {
    export(notes, done) {
      exporter.export((notes as unknown as Ended[]).map(build), (result) => {
        settle(notes.length, result)
        // Once it is told of a failure, the processor sends batches side by side.
        done({ code: ExportResultCode.SUCCESS })
      })
    },
    shutdown: () => exporter.shutdown(),
  }
  return new sdk.BatchSpanProcessor({
    ...{ exporter: own, scheduledDelayMillis: batch.spanDelayMs, exportTimeoutMillis: batch.spanExportMs },
    ...{ maxQueueSize: batch.maxSpans, maxExportBatchSize: batch.spanBatch },
  })
}

const none = { events: [], links: [], droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0 }
const scope = { instrumentationScope: { name: 'plant-store' } }
const constant = { ...none, ...scope, kind: SpanKind.SERVER, ended: true }
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'])

type Ended = ReturnType<typeof note>

/** For the processor: all are sampled, and of a resource that is known. */
const processed = { spanContext: () => ({ traceFlags: 1 }), resource: {} }

/**
 * A note of a request, kept until its span is built and sent. It is a third of a span, and holds none of the
 * request's objects: what outlives a collection of the young generation costs more than all else.
 */
function note(exchange: Exchange, trace: Trace, endMs: number) {
  const { method, route, url, status, durationMs, remoteAddress, raw, reply } = exchange
  // The client of an answer that was broken off may have its head.
  const isHeadSent = status !== 499 || (reply.raw.headersSent && reply.raw.socket !== null)
  return {
    ...{ trace, method, route, url, status, durationMs, remoteAddress, endMs },
    sentStatus: isHeadSent ? reply.raw.statusCode : undefined,
    protocol: reply.request.protocol,
    version: raw.httpVersion,
    agent: raw.headers['user-agent'],
    state: trace.parent ? raw.headers.tracestate : undefined,
    ...processed,
  }
}

function makeBuilder(options: TraceOptions, { mask, instanceId, thread }: Origin) {
  const own = resourceFromAttributes({ 'service.instance.id': instanceId, ...options.resource })
  const resource = defaultResource().merge(own)
  const clean = (text: string) => cut(mask(text))

  return (ended: Ended): sdk.ReadableSpan => {
    const { method, route, status, durationMs, endMs, state } = ended
    const { traceId, spanId, flags, parent } = ended.trace
    const traceState = state && { traceState: new TraceState(clean(String(state))) }
    const context = { traceId, spanId, traceFlags: flags, ...traceState }
    const caller = parent && { traceId, spanId: parent.spanId, traceFlags: parent.flags, isRemote: true }
    const verb = methods.has(method) ? method : 'HTTP'
    return {
      ...constant,
      ...{ name: route ? `${verb} ${route}` : verb, resource, spanContext: () => context },
      ...(caller && { parentSpanContext: caller }),
      ...{
        startTime: toHrTime(endMs - durationMs),
        endTime: toHrTime(endMs),
        duration: toHrTime(durationMs),
      },
      status: { code: status >= 499 ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
      attributes: { ...describe(ended, clean), 'thread.id': thread },
    }
  }
}

function describe(ended: Ended, clean: (text: string) => string): Attributes {
  const { method, route, url, status, sentStatus, agent } = ended
  // An absolute target may have a password in it.
  const [path = '', query = ''] = url.replace(/^\w+:\/\/[^/?]*/, '').split(/[?#]/)
  const shown = query.split('&').filter((pair) => /^(limit|after)=/.test(pair))
  return {
    'http.request.method': methods.has(method) ? method : '_OTHER',
    'url.path': clean(path),
    ...(shown.length > 0 && { 'url.query': clean(shown.join('&')) }),
    'url.scheme': ended.protocol,
    ...(route && { 'http.route': route }),
    ...(sentStatus && { 'http.response.status_code': sentStatus }),
    ...(status >= 499 && { 'error.type': status === 499 ? 'client_closed_request' : String(status) }),
    'client.address': clean(String(ended.remoteAddress)),
    ...(agent && { 'user_agent.original': clean(agent) }),
    'network.protocol.version': ended.version,
  }
}

const room = new Uint8Array(1024)

/** As much of a text as its size may be. */
function cut(text: string): string {
  return text.length <= room.length / 3 ? text : text.slice(0, new TextEncoder().encodeInto(text, room).read)
}

function toHrTime(ms: number): [number, number] {
  const seconds = Math.floor(ms / 1000)
  return [seconds, Math.floor((ms - seconds * 1000) * 1e6)]
}
