// Writes requests as spans of OpenTelemetry by its stable HTTP conventions, in OTLP (opentelemetry-proto, trace/v1).
import { TraceState } from '@opentelemetry/core'
import { PbfWriter } from 'pbf'
import { ListQuery } from '../../schemas/plant.ts'
import type { Exchange } from '../http/connection/exchange.ts'
import type { Trace } from '../http/connection/request-ids.ts'
import { knownMethods } from './methods.ts'

type Attributes = Record<string, string | number>

/** `resource`: attributes of the service; `thread`: id of the thread; `clean`: masks secrets in a text. */
export type SpanOrigin = { resource: Attributes; thread: number; clean: (text: string) => string }

const maxTextBytes = 1024
/** The Status messages STATUS_CODE_UNSET and STATUS_CODE_ERROR. */
const [unset, failed] = [Uint8Array.of(0x18, 0), Uint8Array.of(0x18, 2)]

/**
 * Gathers spans as the bytes of a request to the collector, and keeps no reference to their requests: objects that
 * survive a collection of the young generation would cost more than all the rest.
 */
export class SpanBatch {
  count = 0
  readonly #scopeSpans = new PbfWriter(new Uint8Array(2 ** 16))
  readonly #origin: SpanOrigin

  constructor(origin: SpanOrigin) {
    this.#origin = origin
    this.#scopeSpans.writeMessage(1, (name, scope) => scope.writeStringField(1, name), 'plant-store')
  }

  add(exchange: Exchange): void {
    this.#scopeSpans.writeMessage(2, writeSpan, [exchange, this.#origin])
    this.count++
  }

  /** Returns the whole request (ExportTraceServiceRequest). No span can be added after that. */
  end(): Uint8Array {
    const resourceSpans = new PbfWriter()
    resourceSpans.writeMessage(1, (all, resource) => writeAttributes(1, all, resource), this.#origin.resource)
    resourceSpans.writeBytesField(2, this.#scopeSpans.finish())
    const request = new PbfWriter()
    request.writeBytesField(1, resourceSpans.finish())
    return request.finish()
  }
}

function writeSpan([exchange, origin]: [Exchange, SpanOrigin], span: PbfWriter): void {
  const { method, route, status, durationMs, raw } = exchange
  const { traceId, spanId, parent } = exchange.trace as Trace
  const { clean } = origin
  const endNs = Date.now() * 1e6
  const verb = knownMethods.has(method) ? method : 'HTTP'
  span.writeBytesField(1, Buffer.from(traceId, 'hex'))
  span.writeBytesField(2, Buffer.from(spanId, 'hex'))
  if (parent) span.writeBytesField(4, Buffer.from(parent.spanId, 'hex'))
  if (parent && raw.headers.tracestate)
    span.writeStringField(3, clip(new TraceState(clean(String(raw.headers.tracestate))).serialize()))
  span.writeStringField(5, route ? `${verb} ${route}` : verb)
  span.writeVarintField(6, 2)
  span.writeFixed64Field(7, endNs - durationMs * 1e6)
  span.writeFixed64Field(8, endNs)
  writeAttributes(9, describe(exchange, origin), span)
  span.writeBytesField(15, status >= 499 ? failed : unset)
  // Sampled, and with a remote parent or none.
  span.writeFixed32Field(16, parent ? 0x301 : 0x101)
}

function writeAttributes(field: number, attributes: Attributes, owner: PbfWriter): void {
  for (const key in attributes) owner.writeMessage(field, writeAttribute, [key, attributes[key] as string])
}

function writeAttribute([key, value]: [string, string | number], attribute: PbfWriter): void {
  attribute.writeStringField(1, key)
  attribute.writeMessage(2, writeValue, value)
}

function writeValue(given: string | number, value: PbfWriter): void {
  if (typeof given === 'string') value.writeStringField(1, clip(given))
  else value.writeVarintField(3, given)
}

const encoder = new TextEncoder()
const clipped = new Uint8Array(maxTextBytes)

/** Cuts a text to 1 KiB. */
function clip(text: string): string {
  return text.length * 3 > maxTextBytes ? text.slice(0, encoder.encodeInto(text, clipped).read) : text
}

function describe(exchange: Exchange, { clean, thread }: SpanOrigin): Attributes {
  const { method, route, url, status, raw, reply } = exchange
  // An absolute target may hold a password.
  const [path = '', query = ''] = (url.startsWith('/') ? url : url.replace(absolute, '')).split(/[?#]/)
  const attributes: Attributes = {
    'http.request.method': knownMethods.has(method) ? method : '_OTHER',
    'url.path': clean(path),
    'url.scheme': reply.request.protocol,
    'client.address': clean(String(exchange.remoteAddress)),
    'network.protocol.version': raw.httpVersion,
    'thread.id': thread,
  }
  const shown = query.split('&').filter(isOurs).join('&')
  if (shown) attributes['url.query'] = clean(shown)
  if (route) attributes['http.route'] = route
  // A client that left may have received the head of its answer.
  if (status !== 499 || (reply.raw.headersSent && reply.raw.socket !== null))
    attributes['http.response.status_code'] = reply.raw.statusCode
  if (status >= 499) attributes['error.type'] = status === 499 ? 'client_closed_request' : String(status)
  const agent = raw.headers['user-agent']
  if (agent) attributes['user_agent.original'] = clean(agent)
  return attributes
}

const absolute = /^\w+:\/\/[^/?]*/
const known = Object.keys(ListQuery.properties)
const isOurs = (parameter: string) => known.includes(parameter.split('=', 1)[0] as string)
