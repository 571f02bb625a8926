// Sends lists: a page from its cache or the log, a longer list part by part, each in the coding that its client
// prefers.
import type { Readable } from 'node:stream'
import type { FastifyReply } from 'fastify'
import { type AnswerHeaders, sendAnswer } from '../../http/answer.ts'
import { type Coding, varyByCoding } from '../../http/codings.ts'
import { exchangeOf, type InFlight } from '../../http/connection/in-flight.ts'
import type { FailureLog } from '../../http/failure-log.ts'
import { codecBytes, codecJobs, listShare, maxCodedLists, pageBytes, pageShare } from '../../limits.ts'
import { FairPool } from '../../runtime/fair-pool.ts'
import type { Meter } from '../../runtime/meter.ts'
import type { TimeSlices } from '../../runtime/time-slices.ts'
import type { PlantLog } from '../../store/store.ts'
import { deliver, failWith, replies } from '../delivery.ts'
import { Codec } from './coding/codec.ts'
import { CodedPages } from './coding/coded-pages.ts'
import { compressList } from './list-stream.ts'
import { PageCache, type PageReader, Pages } from './pages.ts'
import type { Form, Listed } from './representations.ts'

/** A list to be sent, and the codings that its client accepts, best first. */
export type Wanted = { listed: Listed; codings: readonly Coding[] }

const maxCopiedBytes = 8 * 1024

export type ListSenderOptions = {
  log: PlantLog
  slices: TimeSlices
  inFlight: InFlight
  failures: FailureLog
  meter: Meter
}

export class ListSender {
  readonly #slices: TimeSlices
  readonly #inFlight: InFlight
  readonly #failures: FailureLog
  readonly #pages: Pages
  /**
   * Bounds compression: the thread pool also writes the log and resolves names, and the cores should serve requests.
   */
  readonly #jobs = new FairPool({ slots: codecJobs })
  readonly #codedPages: CodedPages
  /** The small page that was sent last, as most requests are for the same. */
  #latest: { page: Buffer; body: Buffer | string } | undefined
  /** Number of long lists being compressed. */
  #codedLists = 0

  constructor({ log, slices, inFlight, failures, meter }: ListSenderOptions) {
    const cache = new PageCache()
    cache.show(meter)
    this.#slices = slices
    this.#inFlight = inFlight
    this.#failures = failures
    this.#pages = new Pages(log, cache)
    this.#codedPages = new CodedPages(cache, this.#jobs)
  }

  /** All representations that the client accepts; the one that it would get now comes first. */
  formsOf({ listed, codings }: Wanted): [Form, ...Form[]] {
    const now = this.#codedPages.predictCoding(listed.page, codings)
    const others = codings.filter((coding) => coding !== now)
    return [listed.form(now), ...others.map(listed.form)]
  }

  /** Sends an answer without a body. */
  sendHead(reply: FastifyReply, headers: AnswerHeaders): void {
    sendAnswer(reply, vary(reply, headers))
  }

  send(reply: FastifyReply, wanted: Wanted): void {
    const { listed, codings } = wanted
    const best = codings[0] as Coding
    const coded = best === 'identity' ? undefined : this.#codedPages.find(listed.page, best)
    if (coded) {
      this.#sendPage(reply, listed.form(best), coded)
      return
    }
    // Thousands of reads in one turn would keep others waiting.
    if (this.#pages.has(listed.page)) this.#read(reply, wanted)
    else
      this.#slices.run(
        () => deliver(replies, reply, () => this.#read(reply, wanted)),
        exchangeOf(reply.request).owner,
      )
  }

  #read(reply: FastifyReply, wanted: Wanted): void {
    const list = this.#pages.read(wanted.listed.page, this.#readerOf(reply))
    if (list instanceof Promise) this.#sendLater(reply, list, (read) => this.#sendRead(reply, wanted, read))
    else this.#sendRead(reply, wanted, list)
  }

  #readerOf({ request }: FastifyReply): PageReader {
    const exchange = exchangeOf(request)
    const reserve = (bytes: number) => this.#inFlight.hold(exchange, bytes, pageShare)
    return { owner: exchange.owner, reserve }
  }

  #sendLater<T>(reply: FastifyReply, coming: Promise<T>, sendNow: (come: T) => void): void {
    coming.then(
      (come) => deliver(replies, reply, () => sendNow(come)),
      (error) => deliver(replies, reply, failWith(error)),
    )
  }

  /**
   * Sends a list that was read: plain, if it is not compressed yet or if many others are, unless the client refuses
   * that.
   */
  #sendRead(reply: FastifyReply, { listed, codings }: Wanted, list: Buffer | Readable): void {
    const { page, form } = listed
    const { owner } = exchangeOf(reply.request)
    const best = codings[0] as Coding
    const isPlainGood = codings.includes('identity')
    if (!Buffer.isBuffer(list)) {
      const isBusy = this.#codedLists >= maxCodedLists
      this.#sendStream(reply, form(isPlainGood && isBusy ? 'identity' : best), list)
    } else if (best === 'identity') this.#sendPage(reply, form(best), list)
    else if (isPlainGood) {
      this.#sendPage(reply, form('identity'), list)
      this.#codedPages.prepare(page, best, { bytes: list, owner })
    } else {
      this.#inFlight.hold(exchangeOf(reply.request), list.length, pageShare)
      const coming = this.#codedPages.make(page, best, { bytes: list, owner })
      this.#sendLater(reply, coming, (coded) => this.#sendPage(reply, form(best), coded))
    }
  }

  #sendPage(reply: FastifyReply, form: Form, page: Buffer): void {
    this.#inFlight.hold(exchangeOf(reply.request), page.length, pageShare)
    sendAnswer(reply, vary(reply, form.headers), this.#bodyOf(page), 'latin1')
  }

  /**
   * Turns a small page into text with a character for each byte: Node writes text together with the head, but bytes
   * separately, which costs 2 µs more, of about 30.
   */
  #bodyOf(page: Buffer): Buffer | string {
    if (page.length > maxCopiedBytes) return page
    if (page !== this.#latest?.page) this.#latest = { page, body: page.toString('latin1') }
    return this.#latest.body
  }

  /** Sends a stream. An error resets the connection, so that no client takes a part for the whole, even in HTTP/1.0. */
  #sendStream(reply: FastifyReply, form: Form, list: Readable): void {
    const exchange = exchangeOf(reply.request)
    // One part being sent, and one ahead.
    const bytes = 2 * pageBytes + (form.coding === 'identity' ? 0 : codecBytes)
    this.#inFlight.hold(exchange, bytes, listShare)
    const sent = this.#encode(list, form, exchange.owner)
    exchange.bodyBytes = 0
    reply.raw.once('pipe', () => {
      sent.on('data', ({ length }) => {
        exchange.bodyBytes = Number(exchange.bodyBytes) + length
      })
    })
    sent.on('error', (error) => {
      this.#failures.failed(error, exchange, 'a list was broken off')
      reply.request.raw.socket.resetAndDestroy()
    })
    reply.headers(vary(reply, form.headers)).send(sent)
    // Send the head now: a codec may need several parts before its first output.
    if (sent !== list) reply.raw.flushHeaders()
  }

  #encode(list: Readable, { page, coding }: Form, owner: string): Readable {
    if (coding === 'identity') return list
    const codec = new Codec(coding, page.last - page.after)
    this.#codedLists++
    const stream = compressList(list, { codec, jobs: this.#jobs, owner })
    return stream.once('close', () => this.#codedLists--)
  }
}

/** Adds CORS's `Vary` to that of the list. Headers are kept off `reply`, so that an error sent instead has none. */
function vary(reply: FastifyReply, headers: AnswerHeaders): AnswerHeaders {
  return reply.hasHeader('vary') ? { ...headers, vary: varyByCoding(reply) } : headers
}
