// A request as a span of OpenTelemetry, by its stable HTTP conventions.
import { type Attributes, SpanKind, SpanStatusCode } from '@opentelemetry/api'
import { TraceState } from '@opentelemetry/core'
import { defaultResource, resourceFromAttributes } from '@opentelemetry/resources'
import type { ReadableSpan } from '@opentelemetry/sdk-trace'
import { LRUCache } from 'lru-cache'
import type { TraceOptions } from '../config/trace-settings.ts'
import type { Exchange } from '../http/connection/exchange.ts'
import type { Trace } from '../http/connection/request-ids.ts'

/** `mask` takes secrets out of a text; `thread`: whose spans these are. */
export type Origin = { mask: (text: string) => string; instanceId: string; thread: number }
/** `resource`: attributes of the service. */
type BuilderOptions = Origin & Pick<TraceOptions, 'resource'>

const none = { events: [], links: [], droppedAttributesCount: 0, droppedEventsCount: 0, droppedLinksCount: 0 }
const scope = { instrumentationScope: { name: 'plant-store' } }
const constant = { ...none, ...scope, kind: SpanKind.SERVER, ended: true }
const methods = new Set(['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'])

export type Ended = ReturnType<typeof note>

/** For the processor: all are sampled, and of a resource that is known. */
const processed = { spanContext: () => ({ traceFlags: 1 }), resource: {} }

/**
 * A note of a request, kept until its span is built and sent. It is a third of a span, and holds none of the
 * request's objects: what outlives a collection of the young generation costs more than all else.
 */
export function note(exchange: Exchange, trace: Trace, endMs: number) {
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

/** Makes the function that makes a span of a note. */
export function makeBuilder({ mask, instanceId, thread, resource: own }: BuilderOptions) {
  const ours = resourceFromAttributes({ 'service.instance.id': instanceId, ...own })
  const resource = defaultResource().merge(ours)
  const clean = remember((text) => cut(mask(text)))

  return (ended: Ended): ReadableSpan => {
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
      attributes: describe(ended, thread, clean),
    }
  }
}

function describe(ended: Ended, thread: number, clean: (text: string) => string): Attributes {
  const { method, route, url, status, sentStatus, agent } = ended
  // An absolute target may have a password in it.
  const [path = '', query = ''] = (url.startsWith('/') ? url : url.replace(absolute, '')).split(/[?#]/)
  const attributes: Attributes = {
    'http.request.method': methods.has(method) ? method : '_OTHER',
    'url.path': clean(path),
    'url.scheme': ended.protocol,
    'client.address': clean(String(ended.remoteAddress)),
    'network.protocol.version': ended.version,
    'thread.id': thread,
  }
  const shown = query.split('&').filter(isOurs).join('&')
  if (shown) attributes['url.query'] = clean(shown)
  if (route) attributes['http.route'] = route
  if (sentStatus) attributes['http.response.status_code'] = sentStatus
  if (status >= 499) attributes['error.type'] = status === 499 ? 'client_closed_request' : String(status)
  if (agent) attributes['user_agent.original'] = clean(agent)
  return attributes
}

const absolute = /^\w+:\/\/[^/?]*/

function isOurs(parameter: string): boolean {
  return parameter.startsWith('limit=') || parameter.startsWith('after=')
}

/** Keeps what `make` makes of texts that are short: most requests are like others. */
function remember(make: (text: string) => string): (text: string) => string {
  const made = new LRUCache<string, string>({ max: 1000 })
  return (text) => {
    if (text.length > 256) return make(text)
    const kept = made.get(text)
    if (kept !== undefined) return kept
    const fresh = make(text)
    made.set(text, fresh)
    return fresh
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
