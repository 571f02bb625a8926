// A collector of traces on the loopback address, which can be made to fail in any way. It decodes the fields that tests
// read, by the schema of OTLP 1.x (opentelemetry-proto: trace/v1, common/v1, resource/v1).
import { EventEmitter, once } from 'node:events'
import { createServer, type IncomingHttpHeaders, type RequestListener } from 'node:http'
import { buffer } from 'node:stream/consumers'
import { gunzipSync } from 'node:zlib'
import protobuf from 'protobufjs'
import type { Test } from 'tap'
import { listen } from '../support/wire.ts'

const { root } = protobuf.parse(`syntax = "proto3";
message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
message ScopeSpans { repeated Span spans = 2; }
message Resource { repeated KeyValue attributes = 1; }
message Span { bytes trace_id = 1; bytes parent_span_id = 4; string name = 5;
  enum SpanKind { UNSPECIFIED = 0; INTERNAL = 1; SERVER = 2; CLIENT = 3; PRODUCER = 4; CONSUMER = 5; } SpanKind kind = 6;
  repeated KeyValue attributes = 9; Status status = 15; }
message Status { enum StatusCode { UNSET = 0; OK = 1; ERROR = 2; } StatusCode code = 3; }
message KeyValue { string key = 1; AnyValue value = 2; }
message AnyValue { oneof value { string string_value = 1; int64 int_value = 3; } }`)
const schema = root.lookupType('ExportTraceServiceRequest')

type Attributes = Record<string, string | number>
/** A decoded span, with its ids in hexadecimal. */
type Span = { attributes: Attributes; resource: Attributes }

type Pair = { key: string; value: { stringValue?: string; intValue?: string } }

function readAttributes(pairs: Pair[]): Attributes {
  return Object.fromEntries(pairs.map(({ key, value }) => [key, value.stringValue ?? Number(value.intValue)]))
}

const hex = (base64: string) => Buffer.from(base64, 'base64').toString('hex')

function decode(body: Buffer): Span[] {
  const options = { longs: String, enums: String, bytes: String, defaults: true, arrays: true, oneofs: true }
  // biome-ignore lint/suspicious/noExplicitAny: decoded by the schema
  const { resourceSpans } = schema.toObject(schema.decode(body), options) as any
  // biome-ignore lint/suspicious/noExplicitAny: decoded by the schema
  return resourceSpans.flatMap(({ resource, scopeSpans }: any) =>
    // biome-ignore lint/suspicious/noExplicitAny: decoded by the schema
    scopeSpans.flatMap(({ spans }: any) =>
      // biome-ignore lint/suspicious/noExplicitAny: decoded by the schema
      spans.map((span: any) => ({
        ...span,
        ...{ traceId: hex(span.traceId), parentSpanId: hex(span.parentSpanId), status: span.status.code },
        attributes: readAttributes(span.attributes),
        resource: readAttributes(resource.attributes),
      })),
    ),
  )
}

const patienceMs = 30_000

type Received = { url: string; headers: IncomingHttpHeaders; text: string; spans: Span[] }

export async function startCollector(t: Test) {
  const events = new EventEmitter()
  const received: Received[] = []
  /** Handles requests instead of decoding their spans. */
  let respond: RequestListener | undefined

  const server = createServer(async (request, response) => {
    const sent = await buffer(request)
    events.emit('attempt')
    if (respond) return respond(request, response)
    const body = request.headers['content-encoding'] === 'gzip' ? gunzipSync(sent) : sent
    const text = `${request.rawHeaders.join('\n')}\n${body.toString('latin1')}`
    received.push({ url: request.url as string, headers: request.headers, text, spans: decode(body) })
    response.writeHead(200, { 'content-type': 'application/x-protobuf' }).end()
  })
  const url = `http://127.0.0.1:${await listen(t, server)}`
  return {
    received,
    spans: () => received.flatMap((one) => one.spans),
    answer: (listener: RequestListener | undefined) => (respond = listener),
    /** Resolves at the next request. */
    asked: () => once(events, 'attempt', { signal: AbortSignal.timeout(patienceMs) }),
    env: { OTEL_EXPORTER_OTLP_ENDPOINT: url, OTEL_BSP_SCHEDULE_DELAY: '20' },
  }
}
