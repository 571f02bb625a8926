// The log of a service, on stderr: it is never waited for, holds no secret, and grows no further than it may.
import pino, { type Logger } from 'pino'
import { logEndMs, maxLogBytes } from '../limits.ts'
import { withTimeout } from '../runtime/with-timeout.ts'
import { LineFile } from './line-file.ts'
import { makeMask } from './secrets.ts'

/**
 * A sink for whole lines of JSON: written out in time, and never waited for. Text is masked on the way; whoever hands over
 * bytes has masked them. They are copied before the call returns, and may be a part of a larger buffer that is used again.
 */
export type LineSink = { write(lines: Uint8Array | string): void }

/** `accessTokens`: what no line may show. */
export type LogConfig = {
  logLevel: string
  logFormat: string
  logTime: string
  accessTokens: string[]
}

export type ServiceLog = {
  readonly logger: Logger
  readonly sink: LineSink
  /** Takes tokens out of a text. */
  readonly mask: (text: string) => string
  /** Number of lines dropped so far. */
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
  const isText = logFormat === 'text' || (logFormat === 'auto' && process.stderr.isTTY === true)
  const toText = isText ? (await import('./text-lines.ts')).toTextLines : undefined
  const mask = makeMask(accessTokens)
  const file = new LineFile({
    descriptor: 2,
    maxBytes: maxLogBytes,
    dropped: (lines) => logger.warn({ lines }, 'lines of the log were dropped: nobody read it'),
  })
  const sink: LineSink = {
    write(lines) {
      const masked = typeof lines === 'string' ? mask(lines) : lines
      file.write(toText ? toText(decode(masked)) : masked)
    },
  }
  const logger = makeLogger(sink, { logLevel, logTime })
  return { logger, sink, mask, droppedLines: () => file.dropped, end: (signal) => endLog(file, signal) }
}

/** A logger whose lines go to `sink`. */
export function makeLogger(
  sink: LineSink,
  { logLevel, logTime }: Pick<LogConfig, 'logLevel' | 'logTime'>,
): Logger {
  const timestamp = logTime === 'iso' ? pino.stdTimeFunctions.isoTime : pino.stdTimeFunctions.epochTime
  return pino({ level: logLevel, base: { pid: process.pid }, timestamp }, sink)
}

function decode(lines: Uint8Array | string): string {
  return typeof lines === 'string'
    ? lines
    : Buffer.from(lines.buffer, lines.byteOffset, lines.length).toString()
}

/** Waits until the log is written, or cannot be. An exit would wait for its reader for ever: the process ends by the signal then. */
async function endLog(file: LineFile, signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
  await withTimeout(file.end(), logEndMs, () => {
    /* c8 ignore next 2: nobody reads the log (test/service/service-log.test.ts); a signal leaves no coverage */
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}
