// The list operation: a page of the log, or all of it, as it was when the request came or later.
import type { FastifyPluginAsyncTypebox } from '@fastify/type-provider-typebox'
import type { FastifyReply, FastifyRequest, onRequestHookHandler } from 'fastify'
import { ref } from '../../schemas/component.ts'
import { ListHeaders, ListQuery, PlantList } from '../../schemas/plant.ts'
import { type AnswerHeaders, sendAnswer } from '../http/answer.ts'
import { type Coding, makeNegotiator, varyByCoding } from '../http/codings.ts'
import { findCurrent } from '../http/conditions.ts'
import type { FailureLog } from '../http/failure-log.ts'
import { exchangeOf, type InFlight, waits } from '../http/in-flight.ts'
import { invalid, type ProblemError } from '../http/problem-error.ts'
import { listShare, pageBytes, pageShare } from '../limits.ts'
import type { Meter } from '../meter.ts'
import type { Head, PlantLog } from '../store/store.ts'
import { Codec, codecBytes } from './codec.ts'
import { CodecTurns } from './codec-turns.ts'
import { CodedPages } from './coded-pages.ts'
import { CodedStream } from './coded-stream.ts'
import { makeCursors } from './cursor.ts'
import { type Form, type Listed, makeListForms } from './list-forms.ts'
import { ListStream } from './list-stream.ts'
import { PageCache } from './page-cache.ts'
import { type PageReader, Pages } from './pages.ts'
import { SharedHead } from './shared-head.ts'
import type { Turns } from './turns.ts'

/** A request on its way. */
type Listing = { request: FastifyRequest; reply: FastifyReply }
/** A list that is to be sent, and the codings that its client accepts, the best one first. */
type Wanted = { listed: Listed; codings: readonly Coding[] }

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

/** The order of preference: zstd is the cheapest by far, for us and for clients, and makes lists the smallest. */
const negotiate = makeNegotiator(['zstd', 'br', 'gzip', 'identity'])

export const listRoutes: FastifyPluginAsyncTypebox<ListOptions> = async (app, options) => {
  const { access, log, storeId, path, turns, inFlight, failures, meter } = options
  const cache = new PageCache()
  cache.show(meter)
  const pages = new Pages(log, cache)
  const codecTurns = new CodecTurns()
  const codedPages = new CodedPages(cache, codecTurns)
  const cursors = makeCursors(storeId)
  const describe = makeListForms({ storeId, path, cursors })
  const ownerOf = ({ request }: { request: FastifyRequest }) => exchangeOf(request).owner
  const head = new SharedHead<Listing>(
    log,
    { waits: ({ reply }) => waits(reply), owner: ownerOf, answer, fail },
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
    const listed = describe(head, after, limit)
    const codings = negotiate(request.headers['accept-encoding'])
    const current = findCurrent(request, () => formsOf(listed, codings), 'list')
    if (current) sendAnswer(reply.code(304), vary(reply, current.current))
    else if (request.method === 'HEAD') {
      const { headers } = listed.form(codedPages.foretell(listed.page, codings))
      sendAnswer(reply, vary(reply, headers))
    } else send(reply, { listed, codings })
  }

  /** The form that a client would get now, and the others that it accepts. */
  function formsOf({ page, form }: Listed, codings: readonly Coding[]): Form[] {
    const now = codedPages.foretell(page, codings)
    return [now, ...codings.filter((coding) => coding !== now)].map(form)
  }

  function readerOf({ request }: FastifyReply): PageReader {
    const exchange = exchangeOf(request)
    const reserve = (bytes: number) => inFlight.hold(exchange, bytes, pageShare)
    return { owner: exchange.owner, reserve }
  }

  /** Cross-origin answers vary by more. The headers belong to the list: an error in its place has none of them. */
  function vary(reply: FastifyReply, headers: AnswerHeaders): AnswerHeaders {
    return exchangeOf(reply.request).gathers ? { ...headers, vary: varyByCoding(reply) } : headers
  }

  function send(reply: FastifyReply, wanted: Wanted): void {
    const { listed, codings } = wanted
    const best = codings[0] as Coding
    const coded = best === 'identity' ? undefined : codedPages.find(listed.page, best)
    if (coded) {
      sendPage(reply, listed.form(best), coded)
      return
    }
    const list = pages.read(listed.page, readerOf(reply))
    if (list instanceof Promise) sendLater(reply, list, (read) => sendRead(reply, wanted, read))
    else sendRead(reply, wanted, list)
  }

  /** In a line of its own: what was read is sent, and counted, before much more is read. */
  function sendLater<T>(reply: FastifyReply, coming: Promise<T>, sendNow: (come: T) => void): void {
    const line = `read for ${exchangeOf(reply.request).owner}`
    const sendUnlessGone = (come: T) => {
      if (!waits(reply)) return
      try {
        sendNow(come)
      } catch (error) {
        reply.send(error)
      }
    }
    coming.then(
      (come) => turns.run(() => sendUnlessGone(come), line),
      (error) => turns.run(() => waits(reply) && reply.send(error), line),
    )
  }

  /** A page that is not compressed yet is sent as it is, and a list beside many others, unless the client refuses that. */
  function sendRead(reply: FastifyReply, { listed, codings }: Wanted, list: Buffer | ListStream): void {
    const { page } = listed
    const best = codings[0] as Coding
    const isPlainGood = codings.includes('identity')
    if (list instanceof ListStream)
      sendStream(reply, listed.form(isPlainGood && codecTurns.isBusy ? 'identity' : best), list)
    else if (best === 'identity') sendPage(reply, listed.form(best), list)
    else if (isPlainGood) {
      sendPage(reply, listed.form('identity'), list)
      codedPages.prepare(page, best, { bytes: list, owner: ownerOf(reply) })
    } else {
      inFlight.hold(exchangeOf(reply.request), list.length, pageShare)
      const coming = codedPages.make(page, best, { bytes: list, owner: ownerOf(reply) })
      sendLater(reply, coming, (coded) => sendPage(reply, listed.form(best), coded))
    }
  }

  function sendPage(reply: FastifyReply, form: Form, page: Buffer): void {
    inFlight.hold(exchangeOf(reply.request), page.length, pageShare)
    sendAnswer(reply, vary(reply, form.headers), page)
  }

  /** A list that breaks off resets the connection: no client takes a part for the whole, not in HTTP/1.0 either. */
  function sendStream(reply: FastifyReply, form: Form, list: ListStream): void {
    const exchange = exchangeOf(reply.request)
    // One part on its way, and one ahead.
    inFlight.hold(exchange, 2 * pageBytes + (form.coding === 'identity' ? 0 : codecBytes), listShare)
    const sent = encode(list, form, exchange.owner)
    exchange.stream = sent
    sent.on('error', (error) => {
      failures.failed(error, exchange, 'a list was broken off')
      reply.request.raw.socket.resetAndDestroy()
    })
    reply.headers(vary(reply, form.headers)).send(sent)
    // A codec may want several parts before it gives any bytes, and a request is answered in time.
    if (sent !== list) reply.raw.flushHeaders()
  }

  function encode(list: ListStream, { page, coding }: Form, owner: string): ListStream | CodedStream {
    if (coding === 'identity') return list
    return new CodedStream(list, {
      codec: new Codec(coding, page.last - page.after),
      turns: codecTurns,
      owner,
    })
  }
}

function fail(error: unknown, { reply }: Listing): void {
  reply.send(error)
}

function badCursor(): ProblemError {
  const detail = 'must be taken from the Link header of a list of this store'
  return invalid([{ code: 'format', detail, parameter: 'after' }])
}
