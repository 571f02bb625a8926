// A collector of traces on the loopback address: it decodes what comes by the schema of OTLP 1.x
// (opentelemetry-proto, trace/v1, common/v1, resource/v1), and can be made to fail in all ways.
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type RequestListener, type Server } from 'node:http'
import { createServer as createSecureServer } from 'node:https'
import type { AddressInfo } from 'node:net'
import { buffer } from 'node:stream/consumers'
import type { SecureContextOptions } from 'node:tls'
import { gunzipSync } from 'node:zlib'
import protobuf from 'protobufjs'
import type { Test } from 'tap'

const { root } = protobuf.parse(`syntax = "proto3";
message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; string schema_url = 3; }
message ScopeSpans { InstrumentationScope scope = 1; repeated Span spans = 2; string schema_url = 3; }
message Resource { repeated KeyValue attributes = 1; uint32 dropped_attributes_count = 2; }
message InstrumentationScope { string name = 1; string version = 2; repeated KeyValue attributes = 3; }
message Span { bytes trace_id = 1; bytes span_id = 2; string trace_state = 3; bytes parent_span_id = 4; string name = 5;
  enum SpanKind { UNSPECIFIED = 0; INTERNAL = 1; SERVER = 2; CLIENT = 3; PRODUCER = 4; CONSUMER = 5; } SpanKind kind = 6;
  fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8; repeated KeyValue attributes = 9;
  uint32 dropped_attributes_count = 10; uint32 dropped_events_count = 12; uint32 dropped_links_count = 14;
  Status status = 15; fixed32 flags = 16; }
message Status { string message = 2; enum StatusCode { UNSET = 0; OK = 1; ERROR = 2; } StatusCode code = 3; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue { oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; } }`)
const schema = root.lookupType('ExportTraceServiceRequest')

export type Attributes = Record<string, string | number | boolean>
/** Ids in hexadecimal, times in nanoseconds. */
export type Span = {
  traceId: string
  spanId: string
  parentSpanId: string
  traceState: string
  name: string
  kind: string
  startNs: bigint
  endNs: bigint
  attributes: Attributes
  status: string
  flags: number
  resource: Attributes
}

type Pair = {
  key: string
  value: { value: 'stringValue' | 'intValue'; stringValue?: string; intValue?: string }
}

function readAttributes(pairs: Pair[]): Attributes {
  const read = ({ value }: Pair) => value.stringValue ?? Number(value.intValue)
  return Object.fromEntries(pairs.map((pair) => [pair.key, read(pair)]))
}

const hex = (base64: string) => Buffer.from(base64, 'base64').toString('hex')

function decode(body: Buffer): Span[] {
  const { resourceSpans } = schema.toObject(schema.decode(body), {
    ...{ longs: String, enums: String, bytes: String, defaults: true, arrays: true, oneofs: true },
  })
  // biome-ignore lint/suspicious/noExplicitAny: what the schema says
  return resourceSpans.flatMap(({ resource, scopeSpans }: any) =>
    // biome-ignore lint/suspicious/noExplicitAny: what the schema says
    scopeSpans.flatMap(({ spans }: any) =>
      // biome-ignore lint/suspicious/noExplicitAny: what the schema says
      spans.map((span: any) => ({
        ...span,
        ...{ traceId: hex(span.traceId), spanId: hex(span.spanId), parentSpanId: hex(span.parentSpanId) },
        startNs: BigInt(span.startTimeUnixNano),
        endNs: BigInt(span.endTimeUnixNano),
        attributes: readAttributes(span.attributes),
        status: span.status.code,
        resource: readAttributes(resource.attributes),
      })),
    ),
  )
}

const patienceMs = 30_000

export type Received = { url: string; headers: IncomingHttpHeaders; text: string; spans: Span[] }

/** `tls`: its key and certificate, if it has one. */
export async function startCollector(t: Test, tls?: SecureContextOptions) {
  const events = new EventEmitter()
  const received: Received[] = []
  /** What is done with requests instead of taking their spans. */
  let respond: RequestListener | undefined
  let attempts = 0
  let server: Server
  let port = 0

  const listener: RequestListener = async (request, response) => {
    const sent = await buffer(request)
    attempts++
    events.emit('attempt')
    if (respond) return respond(request, response)
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent
    const text = `${request.rawHeaders.join('\n')}\n${body.toString('latin1')}`
    received.push({ url: request.url as string, headers: request.headers, text, spans: decode(body) })
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
    events.emit('spans')
  }

  async function start(): Promise<void> {
    server = (tls ? createSecureServer(tls, listener) : createServer(listener)).listen(port, '127.0.0.1')
    await once(server, 'listening')
    port = (server.address() as AddressInfo).port
  }

  function stop(): void {
    server.closeAllConnections()
    server.close()
  }
  await start()
  t.teardown(stop)

  const url = `http${tls ? 's' : ''}://127.0.0.1:${port}`
  const spans = () => received.flatMap((one) => one.spans)
  return {
    url,
    received,
    spans,
    start,
    stop,
    get attempts() {
      return attempts
    },
    answer: (listener: RequestListener | undefined) => (respond = listener),
    /** Resolves when it has been asked again. */
    asked: () => once(events, 'attempt', { signal: AbortSignal.timeout(patienceMs) }),
    /** Resolves to the first span that is as asked, as soon as it is there. */
    async find(is: (span: Span) => boolean): Promise<Span> {
      for (;;) {
        const found = spans().find(is)
        if (found) return found
        await once(events, 'spans', { signal: AbortSignal.timeout(patienceMs) })
      }
    },
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: '20' },
  }
}
