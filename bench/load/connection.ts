// One keep-alive connection of the load generator: sends a request, reads the answer's status and length, and sends
// the next. It does so little that the servers are slower than it is.
import { once } from 'node:events'
import { connect } from 'node:net'

export type Target = {
  url: string
  /** A request as it goes over the wire. */
  next: () => string
  status: number
  /** How long to wait before the next request. */
  waitMs: () => number
}

const readBytes = 256 * 1024
const endOfHead = Buffer.from('\r\n\r\n')
const lastChunk = Buffer.from('\r\n0\r\n\r\n')
const head = /^HTTP\/1\.1 (\d+)(?:[\s\S]*?\r\n(content-length|transfer-encoding): *(\d+|chunked))?/i

export class Connection {
  readonly opened: Promise<unknown>
  /** Milliseconds of each answer. */
  readonly latencies: number[] = []
  readonly #target: Target
  readonly #socket
  readonly #done = Promise.withResolvers<void>()
  #partialHead = Buffer.alloc(0)
  #bodyLeft = 0
  /** The last bytes of an answer in chunks. */
  #tail = Buffer.alloc(0)
  #sentAt = 0
  #goesOn = (_now: number) => false

  constructor(target: Target) {
    this.#target = target
    const { hostname: host, port } = new URL(target.url)
    const buffer = Buffer.allocUnsafe(readBytes)
    const callback = (count: number) => {
      this.#take(buffer.subarray(0, count))
      return true
    }
    this.#socket = connect({ host, port: Number(port), noDelay: true, onread: { buffer, callback } })
    this.#socket.on('error', this.#done.reject)
    this.#socket.on('close', () => this.#done.reject(new Error('the server closed the connection')))
    // A connection that fails before run() has rejected `opened` already.
    this.#done.promise.catch(() => {})
    this.opened = once(this.#socket, 'connect')
  }

  /** Sends one request after the other while `goesOn` at the time of the next; resolves with the last answer. */
  run(goesOn: (now: number) => boolean): Promise<void> {
    this.#goesOn = goesOn
    this.#sendInTime(performance.now())
    return this.#done.promise
  }

  close(): void {
    this.#socket.destroy()
  }

  #sendInTime(now: number): void {
    const waitMs = this.#target.waitMs()
    if (!this.#goesOn(now + waitMs)) this.#done.resolve()
    else if (waitMs > 0) setTimeout(() => this.#send(), waitMs)
    else this.#send()
  }

  #send(): void {
    this.#sentAt = performance.now()
    this.#socket.write(this.#target.next())
  }

  #take(chunk: Buffer): void {
    if (this.#bodyLeft === 0) {
      const bytes = this.#partialHead.length > 0 ? Buffer.concat([this.#partialHead, chunk]) : chunk
      if (!this.#takeHead(bytes)) return
    } else this.#takeBody(chunk)
    if (this.#bodyLeft > 0) return
    const now = performance.now()
    this.latencies.push(now - this.#sentAt)
    this.#sendInTime(now)
  }

  /** Returns false while the head is incomplete, and when the answer is not the expected one. */
  #takeHead(bytes: Buffer): boolean {
    const end = bytes.indexOf(endOfHead)
    this.#partialHead = Buffer.from(end === -1 ? bytes : [])
    if (end === -1) return false
    const text = bytes.toString('latin1', 0, end)
    const [, status, , length = status === '304' ? '0' : undefined] = head.exec(text) ?? []
    if (Number(status) !== this.#target.status || length === undefined) {
      this.#done.reject(new Error(`${this.#target.url} answered: ${text}`))
      return false
    }
    this.#tail = Buffer.alloc(0)
    this.#bodyLeft = length === 'chunked' ? Number.POSITIVE_INFINITY : Number(length)
    this.#takeBody(bytes.subarray(end + endOfHead.length))
    return true
  }

  #takeBody(bytes: Buffer): void {
    this.#bodyLeft -= bytes.length
    if (Number.isFinite(this.#bodyLeft)) return
    const { length } = lastChunk
    this.#tail = Buffer.concat([this.#tail, bytes.subarray(-length)]).subarray(-length)
    if (this.#tail.equals(lastChunk)) this.#bodyLeft = 0
  }
}
