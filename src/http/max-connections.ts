// MAX_CONNECTIONS: the most connections served at once. For one more, the network that has most makes room; when it
// cannot, the new one gets 503 and is closed before anything is parsed. The remaining descriptors
// are for the store, the admin server and the log.
import { closeSync, existsSync, openSync, readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import { devNull } from 'node:os'
import type { Logger } from 'pino'
import { problems } from '../../schemas/problems.ts'
import { connectionShare, fewestDescriptors, maxRefused, refusalMs, refusedShare } from '../limits.ts'
import { Throttle } from '../logging/throttle.ts'
import type { Meter } from '../runtime/meter.ts'
import type { InFlight } from './connection/in-flight.ts'
import { ProblemError } from './problem-error.ts'
import { endWithProblem, type SocketContext } from './socket-answers.ts'

/** Default when the descriptor limit is unknown. */
const usualConnections = 1000
const idleSweepMs = 100

/** Reads the descriptor limit of this process from Linux's list; infinite where it is unknown. */
export function readDescriptorLimit(file = '/proc/self/limits'): number {
  const text = existsSync(file) ? readFileSync(file, 'utf8') : ''
  const [, soft = Number.POSITIVE_INFINITY] = /^Max open files +(\d+)/m.exec(text) ?? []
  return Number(soft)
}

/** Derives the default of MAX_CONNECTIONS: less than half of the descriptors. */
export function deriveMax(descriptors: number): number {
  const most = Number.isFinite(descriptors) ? descriptors * connectionShare : usualConnections
  return Math.max(1, Math.floor(most))
}

export type ConnectionLimitOptions = {
  max: number | undefined
  logger: Logger
  descriptors?: number
  /** Open connections per thread, idle ones per thread, and the number of this thread. */
  counts: Int32Array
  idle: Int32Array
  thread: number
}

export class ConnectionLimit {
  readonly max: number
  /** Connections refused by this thread since the start. */
  refused = 0
  readonly #counts: Int32Array
  readonly #idle: Int32Array
  #sweeper: NodeJS.Timeout | undefined
  readonly #thread: number
  readonly #descriptors: number
  readonly #maxEnding: number
  readonly #logger: Logger
  readonly #ending = new Set<Socket>()
  readonly #refusals = new Throttle()
  readonly #shortages = new Throttle()

  /** `max`: the setting; undefined: derived from the descriptors. */
  constructor(options: ConnectionLimitOptions) {
    const { max, logger, descriptors = readDescriptorLimit(), counts, idle, thread } = options
    this.#counts = counts
    this.#idle = idle
    this.#thread = thread
    this.max = max ?? deriveMax(descriptors)
    this.#descriptors = descriptors
    this.#maxEnding = Math.ceil(Math.min(maxRefused, this.#descriptors * refusedShare) / counts.length)
    this.#logger = logger
    if (this.max >= descriptors && thread === 0)
      logger.warn(`MAX_CONNECTIONS ${this.max}: this process may open ${descriptors} file descriptors in all`)
  }

  /** Open connections of this thread. */
  get open(): number {
    return this.#counts[this.#thread] as number
  }

  /** Enforces the limit on a server, whose own `maxConnections` would reset further connections. */
  guard(server: Server, { inFlight, describeProblem }: SocketContext): void {
    const described = describeProblem(new ProblemError(problems.tooManyConnections))
    const [serve] = server.listeners('connection') as [(socket: Socket) => void]
    server.removeListener('connection', serve)
    this.#sweeper = setInterval(() => this.#sweep(inFlight), idleSweepMs).unref()
    server.on('connection', (socket: Socket) => {
      if (this.#makeRoom(inFlight, socket)) {
        Atomics.add(this.#counts, this.#thread, 1)
        socket.once('close', () => Atomics.sub(this.#counts, this.#thread, 1))
        serve.call(server, socket)
        inFlight.connect(socket)
      } else
        this.#refuse(socket, (isHead) =>
          endWithProblem(socket, described, { requestId: inFlight.requestId(), isHead }),
        )
    })
  }

  /**
   * True when there is room, or an idle connection makes some: one of this thread now, one of another thread in its next
   * sweep. Two threads may count on the same one at the same moment.
   */
  #makeRoom(inFlight: InFlight, newcomer: Socket): boolean {
    if (sum(this.#counts) < this.max || inFlight.peers.makeRoom(newcomer)) return true
    this.#idle[this.#thread] = 0
    return sum(this.#counts) < this.max + sum(this.#idle)
  }

  /** Closes idle connections that are too many in all threads, and tells the others how many there are here. */
  #sweep(inFlight: InFlight): void {
    /* c8 ignore next: whether there are too many at this moment */
    for (let more = sum(this.#counts) - this.max; more > 0 && inFlight.peers.makeRoom(); more--);
    this.#idle[this.#thread] = inFlight.peers.closable
    this.#watchDescriptors()
  }

  show(meter: Meter): void {
    const name = 'plant_store_connections'
    meter.gauge(`${name}_open`, 'Connections that are served.', () => this.open)
    meter.gauge(`${name}_max`, 'The most connections that are served at once.', () => this.max, 'max')
    meter.counter(`${name}_refused_total`, 'Connections that were refused at that limit.', () => this.refused)
  }

  /** Cuts refused connections that are still open. */
  close(): void {
    clearInterval(this.#sweeper)
    for (const socket of this.#ending) socket.destroy()
  }

  #refuse(socket: Socket, end: (isHead: boolean) => void): void {
    this.refused++
    this.#log(this.#refusals, 'MAX_CONNECTIONS is reached: further connections are answered 503 and closed')
    socket.on('error', () => socket.destroy())
    if (this.#ending.size >= this.#maxEnding) return void socket.resetAndDestroy()
    this.#ending.add(socket)
    const timer = setTimeout(answer, refusalMs)
    socket.once('data', answer).once('end', answer)
    socket.once('close', () => {
      clearTimeout(timer)
      this.#ending.delete(socket)
    })

    /** Answers after the first bytes, as clients send before they read, or after a while without any. */
    function answer(first?: Buffer): void {
      clearTimeout(timer)
      end(first?.toString('latin1', 0, 5) === 'HEAD ')
    }
  }

  /** Warns when hardly any descriptor is left: then connections are accepted and closed without a word (EMFILE). */
  #watchDescriptors(): void {
    if (findFreeDescriptor() < this.#descriptors - fewestDescriptors) return
    this.#log(this.#shortages, 'hardly any file descriptor is left: connections may be closed unanswered')
  }

  #log(throttle: Throttle, message: string): void {
    if (!throttle.take()) return
    const { max, refused } = this
    this.#logger.warn({ open: sum(this.#counts), max, refused }, message)
  }
}

function sum(numbers: Int32Array): number {
  return numbers.reduce((all, one) => all + one, 0)
}

/** The lowest number that is free, as a new descriptor gets it; infinite when there is none. */
function findFreeDescriptor(): number {
  try {
    const descriptor = openSync(devNull, 'r')
    closeSync(descriptor)
    return descriptor
  } catch {
    return Number.POSITIVE_INFINITY
  }
}
