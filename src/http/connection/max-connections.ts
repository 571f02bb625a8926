// MAX_CONNECTIONS: the most connections served at once. For one more, the connection that has been idle longest is
// closed; when none is idle, the new one gets 503 and is closed before anything is parsed. The remaining descriptors
// are for the store, the admin server and the log.
import { existsSync, readFileSync } from 'node:fs'
import type { Server } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import { problems } from '../../../schemas/problems.ts'
import { connectionShare, fewestDescriptors, maxRefused, refusalMs, refusedShare } from '../../limits.ts'
import { Throttle } from '../../logging/throttle.ts'
import type { Meter } from '../../runtime/meter.ts'
import { ProblemError } from '../problem-error.ts'
import type { InFlight } from './in-flight.ts'
import { endWithProblem, type SocketContext } from './sockets.ts'

/** Default when the descriptor limit is unknown. */
const usualConnections = 1000
const idleSweepMs = 100

type Handled = Socket & { _handle: { fd?: number } | null }

/** Reads the descriptor limit of this process from Linux's list; infinite where it is unknown. */
export function readDescriptorLimit(file = '/proc/self/limits'): number {
  if (!existsSync(file)) return Number.POSITIVE_INFINITY
  const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync(file, 'utf8')) ?? []
  return Number(soft ?? Number.POSITIVE_INFINITY)
}

/** Derives the default of MAX_CONNECTIONS: less than half of the descriptors. */
export function deriveMax(descriptors: number): number {
  if (!Number.isFinite(descriptors)) return usualConnections
  return Math.max(1, Math.floor(descriptors * connectionShare))
}

export type ConnectionLimitOptions = {
  max: number | undefined
  logger: Logger
  descriptors?: number
  /** Open connections per thread, idle ones per thread, and the number of this thread. */
  counts?: Int32Array
  idle?: Int32Array
  thread?: number
}

export class ConnectionLimit {
  readonly max: number
  /** Connections refused by this thread since the start. */
  refused = 0
  readonly #counts: Int32Array
  readonly #idle: Int32Array
  /** Number of idle connections last published to the other threads. */
  #told = 0
  #sweeper: NodeJS.Timeout | undefined
  readonly #thread: number
  readonly #descriptors: number
  readonly #maxEnding: number
  readonly #logger: Logger
  readonly #ending = new Set<Socket>()
  readonly #refusals = new Throttle()
  readonly #shortages = new Throttle()

  /** `max`: the setting; undefined: derived from the descriptors. */
  constructor({
    max,
    logger,
    descriptors = readDescriptorLimit(),
    counts = new Int32Array(1),
    idle = new Int32Array(counts.length),
    thread = 0,
  }: ConnectionLimitOptions) {
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

  /** Open connections of all threads. Two threads may admit the last one at the same moment. */
  #countAll(): number {
    let all = 0
    for (const count of this.#counts) all += count
    return all
  }

  #count(change: 1 | -1): void {
    Atomics.add(this.#counts, this.#thread, change)
  }

  /** Enforces the limit on a server, whose own `maxConnections` would reset further connections. */
  guard(
    server: Server,
    { inFlight, describeProblem }: Pick<SocketContext, 'inFlight' | 'describeProblem'>,
  ): void {
    const described = describeProblem(new ProblemError(problems.tooManyConnections))
    const [serve] = server.listeners('connection') as [(socket: Socket) => void]
    server.removeListener('connection', serve)
    const isShared = this.#counts.length > 1
    if (isShared) this.#sweeper = setInterval(() => this.#shareIdle(inFlight), idleSweepMs).unref()
    server.on('connection', (socket: Handled) => {
      this.#watchDescriptors(socket)
      if (this.#countAll() < this.max || inFlight.closeIdle() || this.#closeElsewhere()) {
        this.#count(1)
        socket.once('close', () => this.#count(-1))
        serve.call(server, socket)
        inFlight.connect(socket)
        if (isShared) this.#shareIdle(inFlight)
      } else
        this.#refuse(socket, (isHead) =>
          endWithProblem(socket, described, { requestId: inFlight.requestId(), isHead }),
        )
    })
  }

  /** Asks another thread to close an idle connection, which counts as closed at once; false when no thread has one. */
  #closeElsewhere(): boolean {
    return this.#idle.some((idle, thread) => {
      if (thread === this.#thread || idle <= 0) return false
      /* c8 ignore next: another thread takes the same one in the same moment */
      if (Atomics.compareExchange(this.#idle, thread, idle, idle - 1) !== idle) return false
      Atomics.sub(this.#counts, thread, 1)
      return true
    })
  }

  /** Closes as many idle connections as other threads subtracted from the published number, then publishes it again. */
  #shareIdle(inFlight: InFlight): void {
    const left = Atomics.exchange(this.#idle, this.#thread, 0)
    for (let wanted = this.#told - left; wanted > 0; wanted--) {
      this.#count(1)
      inFlight.closeIdle()
    }
    this.#told = inFlight.idle
    Atomics.store(this.#idle, this.#thread, this.#told)
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

  /**
   * Warns before descriptors run out: then connections are accepted and closed without a word (EMFILE). New descriptors
   * get the lowest free number, so a high number means that few are left.
   */
  #watchDescriptors(socket: Handled): void {
    if (Number(socket._handle?.fd) >= this.#descriptors - fewestDescriptors)
      this.#log(this.#shortages, 'hardly any file descriptor is left: connections may be closed unanswered')
  }

  #log(throttle: Throttle, message: string): void {
    if (!throttle.take()) return
    const { max, refused } = this
    this.#logger.warn({ open: this.#countAll(), max, refused }, message)
  }
}
