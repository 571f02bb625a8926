// The log of a service, on stderr: it is never waited for, holds no secret, and grows no further than it may.
import pino, { type DestinationStream, type Logger } from 'pino'
import type { Config } from '../config/config.ts'
import { logEndMs } from '../limits.ts'
import { makeMask } from './secrets.ts'

/** What the log may hold in memory while its reader does not read; beyond it lines are dropped. */
const maxLogBytes = 8 * 2 ** 20

/** Where lines go: written out in time, and never waited for. */
export type LineSink = { write(text: string): unknown }

export type LogConfig = Pick<Config, 'logLevel' | 'logFormat' | 'logTime' | 'accessTokens'>

export type ServiceLog = {
  readonly logger: Logger
  /** Takes whole lines of JSON. */
  readonly sink: LineSink
  /** How many lines had no room so far. */
  droppedLines(): number
  /** Writes what is left. Its reader is waited for no longer than a moment: then the process ends by the signal. */
  end(signal?: NodeJS.Signals): Promise<void>
}

export async function openLog({
  logLevel,
  logFormat,
  logTime,
  accessTokens,
}: LogConfig): Promise<ServiceLog> {
  const sink = pino.destination({ dest: 2, sync: false, maxLength: maxLogBytes })
  const isText = logFormat === 'text' || (logFormat === 'auto' && process.stderr.isTTY === true)
  const form = isText ? (await import('./text-lines.ts')).toTextLines : String
  const mask = makeMask(accessTokens)
  const write = sink.write.bind(sink)
  sink.write = (text: string) => write(form(mask(text)))
  const logger = makeLogger(sink, { logLevel, logTime })
  const droppedLines = countDropped(sink, logger)
  let isRead = true
  sink.on('error', ({ code }: NodeJS.ErrnoException) => {
    // A log that cannot be written is no reason to stop serving, nor to try it over and over again at the exit.
    sink.flushSync = () => {}
    if (code !== 'EPIPE') return
    isRead = false
    sink.write = (text) => sink.emit('drop', text)
  })
  return { logger, sink, droppedLines, end: async (signal) => (isRead ? endLog(sink, signal) : undefined) }
}

/** A logger whose lines go to `sink`. */
export function makeLogger(
  sink: LineSink & DestinationStream,
  { logLevel, logTime }: Pick<LogConfig, 'logLevel' | 'logTime'>,
): Logger {
  const timestamp = logTime === 'iso' ? pino.stdTimeFunctions.isoTime : pino.stdTimeFunctions.epochTime
  return pino({ level: logLevel, base: { pid: process.pid }, timestamp }, sink)
}

type Sink = ReturnType<typeof pino.destination>

/** Counts what has no room, and says so when there is room again. */
function countDropped(sink: Sink, logger: Logger): () => number {
  let dropped = 0
  let told = 0
  sink.on('drop', (text: string) => {
    dropped += text.split('\n').length - 1
  })
  sink.on('drain', () => {
    if (dropped === told) return
    const lines = dropped - told
    told = dropped
    logger.warn({ lines }, 'lines of the log were dropped: nobody read it')
  })
  return () => dropped
}

/** Waits until the log is written, or cannot be. An exit would wait for its reader for ever: the process ends by the signal then. */
async function endLog(sink: Sink, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  const timer = setTimeout(() => {
    /* c8 ignore next 2: what a process that ends by a signal has covered is not known */
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  }, logEndMs)
  const over = Promise.withResolvers<void>()
  sink.once('close', over.resolve).once('error', over.resolve)
  sink.end()
  await over.promise
  clearTimeout(timer)
}
