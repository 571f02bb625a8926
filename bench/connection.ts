// A keep-alive connection of the load generator. It parses as little of a response as possible, to stay faster than the
// servers.
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'

type Target = { url: string; next: () => string; status: number }

const readBytes = 256 * 1024
const head = /^HTTP\/1\.1 (\d+)(?:[\s\S]*?\r\n(?:content-length: *(\d+)|transfer-encoding))?/i
const lastChunk = '0\r\n\r\n'

export class Connection {
  readonly opened: Promise<unknown>
  /** The latency of each response in milliseconds. */
  readonly latencies: number[] = []
  readonly #target: Target
  #socket: Socket
  /** The server closes the connection after this response. */
  #isLast = false
  readonly #done = Promise.withResolvers<void>()
  #text = ''
  /** Bytes of the body still to come; Infinity for a chunked response. */
  #left = 0
  #sentMs = 0
  #shouldContinue = (_now: number) => false

  constructor(target: Target) {
    this.#target = target
    this.#socket = this.#open()
    this.#done.promise.catch(() => {})
    this.opened = once(this.#socket, 'connect')
  }

  #open(): Socket {
    const { hostname: host, port } = new URL(this.#target.url)
    const buffer = Buffer.allocUnsafe(readBytes)
    const callback = (count: number) => this.#read(buffer.subarray(0, count))
    const socket = connect({ host, port: Number(port), noDelay: true, onread: { buffer, callback } })
    socket.on('error', this.#done.reject)
    return socket.on('close', () => {
      if (socket === this.#socket) this.#done.reject(new Error('the server closed the connection'))
    })
  }

  /** Sends requests one after another while `shouldContinue` returns true. Resolves after the last response. */
  run(shouldContinue: (now: number) => boolean): Promise<void> {
    this.#shouldContinue = shouldContinue
    this.#send()
    return this.#done.promise
  }

  close(): void {
    this.#socket.destroy()
  }

  #send(): void {
    this.#text = ''
    const former = this.#socket
    if (this.#isLast) this.#socket = this.#open()
    if (this.#isLast) former.destroy()
    this.#sentMs = performance.now()
    this.#socket.write(this.#target.next())
  }

  #read(bytes: Buffer): boolean {
    if (this.#left === 0) this.#readHead(bytes)
    else if (this.#left < Infinity) this.#left -= bytes.length
    else this.#text = (this.#text + bytes.toString('latin1', Math.max(0, bytes.length - 5))).slice(-5)
    if (this.#left === Infinity && this.#text.endsWith(lastChunk)) this.#left = 0
    if (this.#left > 0) return true
    const now = performance.now()
    this.latencies.push(now - this.#sentMs)
    if (this.#shouldContinue(now)) this.#send()
    else this.#done.resolve()
    return true
  }

  /** Assumes that the head arrives in one piece. */
  #readHead(bytes: Buffer): void {
    const end = bytes.indexOf('\r\n\r\n') + 4
    const text = bytes.toString('latin1', 0, end)
    const [start = '', status, length] = head.exec(text) ?? []
    this.#isLast = /\r\nconnection: close\r\n/i.test(text)
    if (Number(status) !== this.#target.status)
      this.#done.reject(new Error(`${this.#target.url} returned ${start}`))
    else if (status === '304') this.#left = 0
    else if (length === undefined) this.#left = Infinity
    else this.#left = Number(length) - (bytes.length - end)
    if (this.#left === Infinity) this.#text = bytes.toString('latin1', bytes.length - 5)
  }
}
