// MAX_CONNECTIONS: how many connections are served. For one too many the one that has been idle longest is closed; when
// none is idle, it is told so and closed before any of it is parsed. The other descriptors are for the store, the admin
// server and the log.
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

/** The descriptor limit of this process, from Linux's list; infinite where it is unknown. */
export function readDescriptorLimit(file = '/proc/self/limits'): number {
  if (!existsSync(file)) return Number.POSITIVE_INFINITY
  const [, soft] = /^Max open files +(\d+)/m.exec(readFileSync(file, 'utf8')) ?? []
  return Number(soft ?? Number.POSITIVE_INFINITY)
}

/** The default of MAX_CONNECTIONS: less than half of the descriptors. */
export function deriveMax(descriptors: number): number {
  if (!Number.isFinite(descriptors)) return usualConnections
  return Math.max(1, Math.floor(descriptors * connectionShare))
}

export type ConnectionLimitOptions = {
  max: number | undefined
  logger: Logger
  descriptors?: number
  /** Open connections of each thread, idle ones of each, and the number of this thread. */
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

  /** `max`: as it was set; undefined: it follows from the descriptors. */
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

  /** Connections that this thread serves now. */
  get open(): number {
    return this.#counts[this.#thread] as number
  }

  /** Connections that all threads serve now. Two threads may admit the last one at the same moment. */
  #countAll(): number {
    let all = 0
    for (const count of this.#counts) all += count
    return all
  }

  #count(change: 1 | -1): void {
    Atomics.add(this.#counts, this.#thread, change)
  }

  /** Has a server serve no more connections than these. It would reset those past its own `maxConnections`. */
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

  /** Has another thread close an idle connection at its next look, and says whether one has any. It counts as closed. */
  #closeElsewhere(): boolean {
    return this.#idle.some((idle, thread) => {
      if (thread === this.#thread || idle <= 0) return false
      /* c8 ignore next: another thread takes the same one in the same moment */
      if (Atomics.compareExchange(this.#idle, thread, idle, idle - 1) !== idle) return false
      Atomics.sub(this.#counts, thread, 1)
      return true
    })
  }

  /** Closes as many idle connections as the other threads took off the published number, and publishes it again. */
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
    meter.gauge(`${name}_max`, 'How many may be.', () => this.max, 'max')
    meter.counter(`${name}_refused_total`, 'Connections past that.', () => this.refused)
  }

  /** Those that were refused and are still there are cut. */
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

    /** A client has its request out before it looks for an answer; one that sends none is told all the same. */
    function answer(first?: Buffer): void {
      clearTimeout(timer)
      end(first?.toString('latin1', 0, 5) === 'HEAD ')
    }
  }

  /**
   * With no descriptor left the system takes connections and closes them, and tells nobody (EMFILE). New descriptors get
   * the lowest free number, so a high one means that hardly any is free.
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
