// The list operation: a page of the log, or all of it, as it was when the request came or later.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { ref } from '../../schemas/component.ts'
import { ListHeaders, ListQuery, PlantList } from '../../schemas/plant.ts'
import { sendAnswer } from '../http/answer.ts'
import type { FailureLog } from '../http/failure-log.ts'
import { exchangeOf, type InFlight, waits } from '../http/in-flight.ts'
import { invalid, ProblemError } from '../http/problem-error.ts'
import { listShare, pageBytes, pageShare } from '../limits.ts'
import type { Meter } from '../meter.ts'
import type { Head, PlantLog } from '../store/store.ts'
import { makeCursors } from './cursor.ts'
import { makeEtags, matchesStrongly, matchesWeakly } from './etag.ts'
import { ListStream } from './list-stream.ts'
import { type Page, type PageReader, Pages, pageOf } from './pages.ts'
import { SharedHead } from './shared-head.ts'
import type { Turns } from './turns.ts'

/** A request on its way. */
type Listing = { request: FastifyRequest; reply: FastifyReply }
type Headers = Record<string, string>
/** What is asked for of a log, and what is said of it. */
type Described = { head: Head; after: number; limit: number; page: Page; etag: string; headers: Headers }

/** `path`: where the routes are as clients see them; it starts the `Link` to a next page. */
export type ListOptions = {
  access: onRequestHookHandler
  log: PlantLog
  storeId: string
  path: string
  turns: Turns
  inFlight: InFlight
  failures: FailureLog
  meter: Meter
}

export const listSchema = {
  tags: ['plants'],
  operationId: 'listPlants',
  summary: 'List plants',
  description:
    'In the order in which they were added. The list holds every plant whose addition was answered before the ' +
    'request came.',
  headers: ListHeaders,
  querystring: ListQuery,
  response: { 200: ref(PlantList) },
}

export const listRoutes: FastifyPluginAsyncTypebox<ListOptions> = async (app, options) => {
  const { access, log, storeId, path, turns, inFlight, failures, meter } = options
  const pages = new Pages(log)
  showCache(pages, meter)
  const cursors = makeCursors(storeId)
  const etagOf = makeEtags(storeId)
  const owner = ({ request }: Listing) => exchangeOf(request).owner
  const head = new SharedHead<Listing>(
    log,
    { waits: ({ reply }) => waits(reply), owner, answer, fail },
    turns,
  )

  const route = {
    onRequest: access,
    schema: listSchema,
    handler(request: FastifyRequest, reply: FastifyReply): void {
      head.wait({ request, reply })
    },
  }
  app.get('/plants', route)
  app.head('/plants', route)

  function answer(head: Head, { request, reply }: Listing): void {
    const { limit = Number.POSITIVE_INFINITY, after: cursor } = request.query as ListQuery
    const after = cursor === undefined ? 0 : cursors.decode(cursor, head.epochs)
    if (after === undefined || after > head.position) throw badCursor()
    const { page, etag, headers } = describe(head, after, limit)
    if (isCurrent(request, etag)) {
      const { 'content-type': _, ...current } = headers
      sendAnswer(reply.code(304), current)
    } else if (request.method === 'HEAD') sendAnswer(reply, headers)
    else send(reply, headers, pages.read(page, readerOf(reply)))
  }

  /** Kept for the next who asks for the same: while nobody writes, most do. */
  let latest: Described | undefined

  function describe(head: Head, after: number, limit: number): Described {
    if (latest?.head === head && latest.after === after && latest.limit === limit) return latest
    const page = pageOf(after, Math.min(after + limit, head.position), head.epochs)
    const etag = etagOf(page)
    const headers: Headers = {
      etag,
      'cache-control': 'private, no-cache',
      'content-type': 'application/json; charset=utf-8',
    }
    if (page.last < head.position && limit > 0) headers.link = linkTo(page, limit)
    latest = { head, after, limit, page, etag, headers }
    return latest
  }

  function readerOf({ request }: FastifyReply): PageReader {
    const exchange = exchangeOf(request)
    const reserve = (bytes: number) => inFlight.hold(exchange, bytes, pageShare)
    return { owner: exchange.owner, reserve }
  }

  function linkTo({ last, epochs }: Page, limit: number): string {
    return `<${path}plants?after=${cursors.encode(last, epochs)}&limit=${limit}>; rel="next"`
  }

  /** The headers belong to the list: an error in its place has none of them. */
  function send(reply: FastifyReply, headers: Headers, list: Buffer | Promise<Buffer | ListStream>): void {
    if (!(list instanceof Promise)) {
      sendPage(reply, headers, list)
      return
    }
    // In a line of its own: what was read is sent, and counted, before much more is read.
    const line = `read for ${exchangeOf(reply.request).owner}`
    list.then(
      (read) => turns.run(() => sendRead(reply, headers, read), line),
      (error) => turns.run(() => waits(reply) && reply.send(error), line),
    )
  }

  function sendRead(reply: FastifyReply, headers: Headers, list: Buffer | ListStream): void {
    if (!waits(reply)) return
    try {
      if (list instanceof ListStream) sendStream(reply, headers, list)
      else sendPage(reply, headers, list)
    } catch (error) {
      reply.send(error)
    }
  }

  function sendPage(reply: FastifyReply, headers: Headers, page: Buffer): void {
    inFlight.hold(exchangeOf(reply.request), page.length, pageShare)
    sendAnswer(reply, headers, page)
  }

  /** A list that breaks off resets the connection: no client takes a part for the whole, not in HTTP/1.0 either. */
  function sendStream(reply: FastifyReply, headers: Headers, list: ListStream): void {
    const exchange = exchangeOf(reply.request)
    // One part on its way, and one ahead.
    inFlight.hold(exchange, 2 * pageBytes, listShare)
    exchange.stream = list
    list.on('error', (error) => {
      failures.failed(error, exchange, 'a list was broken off')
      reply.request.raw.socket.resetAndDestroy()
    })
    reply.headers(headers).send(list)
  }
}

function showCache(pages: Pages, meter: Meter): void {
  const name = 'plant_store_page_cache'
  meter.counter(`${name}_hits_total`, 'Pages that were in the cache.', () => pages.cache.hits)
  meter.counter(`${name}_misses_total`, 'Pages that were not in the cache.', () => pages.cache.misses)
  meter.gauge(`${name}_bytes`, 'Size of the cached pages.', () => pages.cache.bytes)
}

/** Evaluates the conditions of a request (RFC 9110, section 13.2.2). Throws when If-Match is false. */
function isCurrent({ headers }: FastifyRequest, etag: string): boolean {
  const { 'if-match': ifMatch, 'if-none-match': ifNoneMatch } = headers
  if (ifMatch !== undefined && !matchesStrongly(ifMatch, etag))
    throw new ProblemError('precondition-failed', 'The list is not one that If-Match names.')
  return ifNoneMatch !== undefined && matchesWeakly(ifNoneMatch, etag)
}

function fail(error: unknown, { reply }: Listing): void {
  reply.send(error)
}

function badCursor(): ProblemError {
  const detail = 'must be taken from the Link header of a list of this store'
  return invalid([{ code: 'format', detail, parameter: 'after' }])
}
