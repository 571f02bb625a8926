// Traces: a span per request, sent by OTLP over HTTP. Only this file loads the SDK, which reads the OTEL_ variables.
import { setTimeout as sleep } from 'node:timers/promises'
import type { SpanExporter } from '@opentelemetry/sdk-trace-node'
import type { FastifyBaseLogger } from 'fastify'
import fp from 'fastify-plugin'
import type { Meter } from '../metrics.ts'
import { describeFailure, makeOutage } from '../outage.ts'
import { version } from '../version.ts'
import { pathOf } from './requests.ts'

/** Time that a shutdown waits for the collector. */
const flushMs = 900

/** Register it before the routes if OTEL_EXPORTER_OTLP_ENDPOINT is set. `mask`: masks tokens in paths. */
export const tracing = fp<{ meter: Meter; mask: (text: string) => string }>(async (app, { meter, mask }) => {
  const { OTEL_SDK_DISABLED = '', OTEL_TRACES_EXPORTER } = process.env
  if (OTEL_SDK_DISABLED.toLowerCase() === 'true' || OTEL_TRACES_EXPORTER === 'none') return
  const { diag, DiagLogLevel, propagation, trace } = await import('@opentelemetry/api')
  // Errors in the OTEL_ variables are logged while the SDK reads them; later errors are outages.
  const warn = (message: string) => app.log.warn(`OpenTelemetry: ${message}`)
  diag.setLogger({ error: warn, warn, info() {}, debug() {}, verbose() {} }, DiagLogLevel.WARN)
  const provider = await startProvider(app.log, meter)
  diag.disable()

  const { FastifyOtelInstrumentation } = await import('@fastify/otel')
  const instrumentation = new FastifyOtelInstrumentation({
    instrumentHooks: false,
    instrumentHandler: false,
    recordExceptions: false,
    requestHook(span, { method, url, routeOptions }) {
      if (!span.isRecording()) return
      span.updateName(routeOptions.url === undefined ? method : `${method} ${routeOptions.url}`)
      // Without the query, which may contain secrets.
      span.setAttribute('url.path', mask(pathOf(url).replace(/^https?:\/\/[^/]*/i, '')))
    },
  })
  instrumentation.setTracerProvider(provider)
  await app.register(instrumentation.plugin())
  app.addHook('onClose', async () => {
    await Promise.race([provider.shutdown().catch(() => {}), sleep(flushMs, undefined, { ref: false })])
    // The provider registered these for the whole process.
    trace.disable()
    propagation.disable()
  })
})

async function startProvider(logger: FastifyBaseLogger, meter: Meter) {
  const { NodeTracerProvider, BatchSpanProcessor } = await import('@opentelemetry/sdk-trace-node')
  const { OTLPTraceExporter } = await import('@opentelemetry/exporter-trace-otlp-proto')
  const { defaultResource, detectResources, envDetector, resourceFromAttributes, serviceInstanceIdDetector } =
    await import('@opentelemetry/resources')
  const own = { 'service.name': 'plant-store', 'service.version': version }
  const given = detectResources({ detectors: [serviceInstanceIdDetector, envDetector] })
  const provider = new NodeTracerProvider({
    resource: defaultResource().merge(resourceFromAttributes(own)).merge(given),
    spanProcessors: [new BatchSpanProcessor(watchExporter(new OTLPTraceExporter(), logger, meter))],
  })
  // Spans have no children, so no context is propagated to asynchronous calls, which would slow down each call.
  provider.register({ contextManager: null })
  return provider
}

/** Adapts spans before they are sent, counts lost spans, and logs outages of the collector. */
function watchExporter(exporter: SpanExporter, logger: FastifyBaseLogger, meter: Meter): SpanExporter {
  const outage = makeOutage(logger, { failed: 'traces cannot be sent', recovered: 'traces are sent again' })
  let lost = 0
  meter.counter('plant_store_spans_dropped_total', 'Spans that could not be sent.', () => lost)
  return {
    export(spans, done) {
      // @fastify/otel sets the status of all errors, but a 4xx is not a server error (OpenTelemetry, HTTP spans).
      for (const { attributes, status } of spans)
        if (Number(attributes['http.response.status_code']) < 500)
          Object.assign(status, { code: 0, message: undefined })
      exporter.export(spans, (result) => {
        if (result.code === 0) outage.reportRecovery()
        else {
          lost += spans.length
          // The collector's response is not logged, because it may repeat the data sent to it.
          const { code } = Object(result.error)
          const isStatus = typeof code === 'number'
          outage.reportFailure(isStatus ? `the collector returned ${code}` : describeFailure(result.error))
        }
        done(result)
      })
    },
    shutdown: () => exporter.shutdown(),
  }
}
