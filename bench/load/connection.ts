// One keep-alive connection of the load generator: sends a request, reads the answer's status and length, and sends
// the next. It does so little that the servers are slower than it is.
import { connect, type Socket } from 'node:net'

export type Target = {
  url: string
  /** A request as it goes over the wire. */
  next: () => string
  status: number
  /** How long to wait before the next request; at once without it. */
  waitMs?: () => number
}

const readBytes = 64 * 1024
const endOfHead = Buffer.from('\r\n\r\n')
const head = /^HTTP\/1\.1 (\d+)(?:[\s\S]*?\r\ncontent-length: *(\d+))?/i

export class Connection {
  readonly #target: Target
  readonly #socket: Socket
  readonly #latencies: number[]
  #partialHead: Buffer | undefined
  #bodyLeft = 0
  #sentAt = 0
  #deadline = 0
  #resolve = () => {}
  #reject: (error: Error) => void = () => {}

  /** `latencies`: where the milliseconds of each answer are put. */
  constructor(target: Target, latencies: number[]) {
    this.#target = target
    this.#latencies = latencies
    const { hostname, port } = new URL(target.url)
    this.#socket = connect({
      host: hostname,
      port: Number(port),
      noDelay: true,
      onread: {
        buffer: Buffer.allocUnsafe(readBytes),
        callback: (count, buffer) => {
          this.#take(Buffer.from(buffer.buffer, buffer.byteOffset, count))
          return true
        },
      },
    })
    this.#socket.on('error', (error) => this.#reject(error))
    this.#socket.on('close', () => this.#reject(new Error('the server closed the connection')))
  }

  /** Resolves when the connection is there. */
  opened(): Promise<void> {
    return new Promise((resolve, reject) => {
      this.#reject = reject
      this.#socket.once('connect', resolve)
    })
  }

  /** Sends one request after the other until a time of performance.now(); resolves with the last answer. */
  run(deadline: number): Promise<void> {
    this.#deadline = deadline
    return new Promise((resolve, reject) => {
      this.#resolve = resolve
      this.#reject = reject
      this.#sendInTime(performance.now())
    })
  }

  close(): void {
    this.#reject = () => {}
    this.#socket.destroy()
  }

  #sendInTime(now: number): void {
    const waitMs = this.#target.waitMs?.() ?? 0
    if (now + waitMs >= this.#deadline) this.#resolve()
    else if (waitMs > 0) setTimeout(() => this.#send(), waitMs)
    else this.#send()
  }

  #send(): void {
    this.#sentAt = performance.now()
    this.#socket.write(this.#target.next())
  }

  #take(chunk: Buffer): void {
    if (this.#bodyLeft > 0) {
      this.#bodyLeft -= chunk.length
    } else {
      const text = this.#partialHead ? Buffer.concat([this.#partialHead, chunk]) : chunk
      const end = text.indexOf(endOfHead)
      if (end === -1) {
        this.#partialHead = Buffer.from(text)
        return
      }
      this.#partialHead = undefined
      if (!this.#readHead(text.toString('latin1', 0, end))) return
      this.#bodyLeft -= text.length - end - endOfHead.length
    }
    if (this.#bodyLeft === 0) this.#answered()
  }

  #readHead(text: string): boolean {
    const [, status, length] = head.exec(text) ?? []
    this.#bodyLeft = Number(length ?? 0)
    if (Number(status) === this.#target.status && (length !== undefined || status === '304')) return true
    this.#reject(new Error(`${this.#target.url} answered: ${text}`))
    return false
  }

  #answered(): void {
    const now = performance.now()
    this.#latencies.push(now - this.#sentAt)
    this.#sendInTime(now)
  }
}
