// Sends lists: what is cached at once, the rest when its caller's turn comes.
import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { type AnswerHeaders, sendAnswer } from '../../../http/answer.ts'
import { type Codings, listCodings, makeNegotiator, varyByCoding } from '../../../http/codings.ts'
import { findCurrent } from '../../../http/conditions.ts'
import { exchangeOf, type InFlight, waits } from '../../../http/connection/in-flight.ts'
import type { FailureLog } from '../../../http/failure-log.ts'
import { pageShare } from '../../../limits.ts'
import type { TimeSlices } from '../../../runtime/time-slices.ts'
import { deliver, failWith } from '../../delivery.ts'
import type { Caller, ListBody, Pages } from '../cache/pages.ts'
import type { Form, Listed } from './representations.ts'

const negotiate = makeNegotiator(listCodings)
const maxCopiedBytes = 8 * 1024

export type ListSenderOptions = { slices: TimeSlices; inFlight: InFlight; failures: FailureLog }

export class ListSender {
  readonly #pages: Pages
  readonly #options: ListSenderOptions
  /** The small page that was sent last, as most requests are for the same. */
  #latest: { page: Buffer; text: string } | undefined

  constructor(pages: Pages, options: ListSenderOptions) {
    this.#pages = pages
    this.#options = options
  }

  /** Answers GET and HEAD: with 304 when the client has the list already. Throws `precondition-failed` and `overloaded`. */
  send(reply: FastifyReply, list: Listed): void {
    const { request } = reply
    const codings = negotiate(request.headers['accept-encoding'])
    const forms = () => this.#formsOf(list, codings)
    const current = findCurrent(request, forms, 'list')
    if (current) sendAnswer(reply.code(304), vary(reply, current.headersOf304))
    else if (request.method === 'HEAD') sendAnswer(reply, vary(reply, forms()[0].headers))
    else this.#sendList(reply, list, codings)
  }

  /** All forms that the client accepts; the one that it would get now comes first. */
  #formsOf({ range, form }: Listed, codings: Codings): [Form, ...Form[]] {
    const now = this.#pages.predict(range, codings)
    return [form(now), ...codings.filter((coding) => coding !== now).map(form)]
  }

  #sendList(reply: FastifyReply, list: Listed, codings: Codings): void {
    const { owner } = exchangeOf(reply.request)
    const found = this.#pages.findCached(list.range, codings, owner)
    if (found) this.#sendBody(reply, list, found)
    // Thousands of reads in one turn would keep others waiting.
    else this.#options.slices.run(() => this.#read(reply, list, codings), owner)
  }

  #read(reply: FastifyReply, list: Listed, codings: Codings): void {
    this.#pages.read(list.range, codings, this.#callerOf(reply)).then(
      (body) => deliver(reply, () => this.#sendBody(reply, list, body)),
      (error) => deliver(reply, failWith(error)),
    )
  }

  /** A client that has left holds nothing, and nothing more is done for it. */
  #callerOf(reply: FastifyReply): Caller {
    const exchange = exchangeOf(reply.request)
    const hold = (bytes: number, share: number) => {
      if (!waits(reply)) throw new Error('the client has left')
      this.#options.inFlight.hold(exchange, bytes, share)
    }
    return { owner: exchange.owner, hold }
  }

  #sendBody(reply: FastifyReply, listed: Listed, { coding, list }: ListBody): void {
    const headers = vary(reply, listed.form(coding).headers)
    if (!Buffer.isBuffer(list)) {
      this.#sendStream(reply, headers, list())
      return
    }
    this.#options.inFlight.hold(exchangeOf(reply.request), list.length, pageShare)
    sendAnswer(reply, headers, this.#textOf(list), 'latin1')
  }

  /**
   * Turns a small page into text with a character for each byte: Node writes text together with the head, but bytes
   * separately, which costs 2 µs more, of about 30.
   */
  #textOf(page: Buffer): Buffer | string {
    if (page.length > maxCopiedBytes) return page
    if (page !== this.#latest?.page) this.#latest = { page, text: page.toString('latin1') }
    return this.#latest.text
  }

  /** Sends a stream. An error resets the connection, so that no client takes a part for the whole, even in HTTP/1.0. */
  #sendStream(reply: FastifyReply, headers: AnswerHeaders, list: Readable): void {
    const exchange = exchangeOf(reply.request)
    exchange.bodyBytes = 0
    reply.raw.once('pipe', () => {
      list.on('data', ({ length }) => {
        exchange.bodyBytes = Number(exchange.bodyBytes) + length
      })
    })
    list.on('error', (error) => {
      this.#options.failures.failed(error, exchange, 'a list was broken off')
      reply.request.raw.socket.resetAndDestroy()
    })
    reply.headers(headers).send(list)
    // Send the head now: a codec may need several parts before its first output.
    if (headers['content-encoding'] !== undefined) reply.raw.flushHeaders()
  }
}

/** Adds CORS's `Vary` to that of the list. Headers are kept off `reply`, so that an error sent instead has none. */
function vary(reply: FastifyReply, headers: AnswerHeaders): AnswerHeaders {
  return reply.hasHeader('vary') ? { ...headers, vary: varyByCoding(reply) } : headers
}
