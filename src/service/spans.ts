// Requests as spans of OpenTelemetry, by its stable HTTP conventions, in OTLP (opentelemetry-proto, trace/v1).
import { TraceState } from '@opentelemetry/core'
import type { Exchange } from '../http/connection/exchange.ts'
import type { Trace } from '../http/connection/request-ids.ts'
import { Message } from './message.ts'

/** `resource`: attributes of the service; `thread`: whose spans these are; `clean` takes secrets out of a text. */
export type Origin = { resource: Record<string, string>; thread: number; clean: (text: string) => string }

const maxSpanBytes = 8192
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'])
/** Field 16: the request is sampled, and its parent, if it has one, is elsewhere. */
const ofRoot = Buffer.of(0x85, 0x01, 0x01, 0x01, 0, 0)
const ofCaller = Buffer.of(0x85, 0x01, 0x01, 0x03, 0, 0)
/** Field 15: STATUS_CODE_UNSET and STATUS_CODE_ERROR. */
const unset = Buffer.of(0x7a, 2, 0x18, 0)
const failed = Buffer.of(0x7a, 2, 0x18, 2)

/**
 * A request to the collector (ExportTraceServiceRequest), to which spans are added as bytes. It holds nothing of their
 * requests: what outlives a collection of the young generation costs more than all else.
 */
export class SpanBatch {
  count = 0
  readonly #message = new Message()
  readonly #resourceSpans = this.#message.begin(1, 4)
  readonly #scopeSpans: number
  readonly #origin: Origin

  constructor(origin: Origin) {
    const message = this.#message
    const resource = message.begin(1, 4)
    for (const [key, value] of Object.entries(origin.resource)) {
      message.reserve(maxSpanBytes)
      message.putAttribute(1, key, value)
    }
    message.end(resource, 4)
    this.#scopeSpans = message.begin(2, 4)
    const scope = message.begin(1)
    message.putText(1, 'plant-store')
    message.end(scope)
    this.#origin = origin
  }

  /** `endMs`: since 1970. */
  add(exchange: Exchange, { traceId, spanId, parent }: Trace, endMs: number): void {
    const { method, route, status, durationMs, raw } = exchange
    const { clean, thread } = this.#origin
    const message = this.#message
    message.reserve(maxSpanBytes)
    const span = message.begin(2)
    message.putText(1, traceId, 'hex')
    message.putText(2, spanId, 'hex')
    message.put(parent ? ofCaller : ofRoot)
    if (parent) message.putText(4, parent.spanId, 'hex')
    if (parent && raw.headers.tracestate)
      message.putText(3, new TraceState(clean(String(raw.headers.tracestate))).serialize())
    const verb = methods.has(method) ? method : 'HTTP'
    message.putText(5, route ? `${verb} ${route}` : verb)
    message.putNumber(6, 2)
    message.putTime(7, endMs - durationMs)
    message.putTime(8, endMs)
    const attributes = describe(exchange, clean)
    for (const key in attributes) message.putAttribute(9, key, attributes[key] as string | number)
    message.putAttribute(9, 'thread.id', thread)
    message.put(status >= 499 ? failed : unset)
    message.end(span)
    this.count++
  }

  /** Its bytes: no span is added after that. */
  end(): Uint8Array {
    this.#message.end(this.#scopeSpans, 4)
    this.#message.end(this.#resourceSpans, 4)
    return this.#message.bytes
  }
}

function describe(exchange: Exchange, clean: (text: string) => string): Record<string, string | number> {
  const { method, route, url, status, raw, reply } = exchange
  // An absolute target may have a password in it.
  const [path = '', query = ''] = (url.startsWith('/') ? url : url.replace(absolute, '')).split(/[?#]/)
  const attributes: Record<string, string | number> = {
    'http.request.method': methods.has(method) ? method : '_OTHER',
    'url.path': clean(path),
    'url.scheme': reply.request.protocol,
    'client.address': clean(String(exchange.remoteAddress)),
    'network.protocol.version': raw.httpVersion,
  }
  const shown = query.split('&').filter(isOurs).join('&')
  if (shown) attributes['url.query'] = clean(shown)
  if (route) attributes['http.route'] = route
  // The client of an answer that was broken off may have its head.
  if (status !== 499 || (reply.raw.headersSent && reply.raw.socket !== null))
    attributes['http.response.status_code'] = reply.raw.statusCode
  if (status >= 499) attributes['error.type'] = status === 499 ? 'client_closed_request' : String(status)
  const agent = raw.headers['user-agent']
  if (agent) attributes['user_agent.original'] = clean(agent)
  return attributes
}

const absolute = /^\w+:\/\/[^/?]*/

function isOurs(parameter: string): boolean {
  return parameter.startsWith('limit=') || parameter.startsWith('after=')
}
