// Traces: one span for each request, handed to the processor of OpenTelemetry, which sends them in batches. Loaded where
// traces are on.
import { ROOT_CONTEXT } from '@opentelemetry/api'
import { type ExportResult, ExportResultCode } from '@opentelemetry/core'
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto'
import * as sdk from '@opentelemetry/sdk-trace'
import type { Logger } from 'pino'
import type { TraceOptions } from '../config/trace-settings.ts'
import type { Exchange } from '../http/connection/exchange.ts'
import { readTrace, type Trace } from '../http/connection/request-ids.ts'
import { traceFlushMs } from '../limits.ts'
import { Outage } from '../logging/outage.ts'
import type { Meter } from '../runtime/meter.ts'
import { withTimeout } from '../runtime/with-timeout.ts'
import { type Ended, makeBuilder, note, type Origin } from './spans.ts'

type Options = Origin & { logger: Logger; meter: Meter }

/** `begin` gives a request its span, `add` takes one that has ended, `end` sends those that are left. */
export function makeTraces(options: TraceOptions, { logger, meter, ...origin }: Options) {
  const outage = new Outage(logger, { gone: 'traces cannot be sent', back: 'traces are sent again' })
  const ids = new sdk.RandomIdGenerator()
  const isSampled = makeSampler(options)
  const processor = makeProcessor(options, makeBuilder({ ...origin, resource: options.resource }), settle)
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
  const sampler = new sdk.TraceIdRatioBasedSampler(share)
  const isRootSampled = Number.isInteger(share)
    ? () => share === 1
    : (traceId: string) =>
        sampler.shouldSample(ROOT_CONTEXT, traceId).decision === sdk.SamplingDecision.RECORD_AND_SAMPLED
  const isParentBased = traceSampler.startsWith('parentbased')
  return (traceId, parent) => (parent && isParentBased ? parent.flags % 2 === 1 : isRootSampled(traceId))
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
