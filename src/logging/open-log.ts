// The log of a service, on stderr: it never blocks, holds no secrets, and takes bounded memory.
import pino, { type Logger } from 'pino'
import { logEndMs, maxLogBytes } from '../limits.ts'
import { withTimeout } from '../runtime/with-timeout.ts'
import { LineFile } from './line-file.ts'
import { makeMask } from './secrets.ts'

/**
 * A sink for whole lines of JSON, which never blocks. It masks text; bytes must have been masked by the caller, and are
 * copied before the call returns, so that their buffer can be used again.
 */
export type LineSink = { write(lines: Uint8Array | string): void }

export type LoggerConfig = { logLevel: string; logTime: string }
/** `accessTokens`: tokens that no line may show. */
export type LogConfig = LoggerConfig & { logFormat: string; accessTokens: string[] }

export type ServiceLog = Awaited<ReturnType<typeof openLog>>

export async function openLog({ logFormat, accessTokens, ...config }: LogConfig) {
  const isText = logFormat === 'text' || (logFormat === 'auto' && process.stderr.isTTY === true)
  const toText = isText ? (await import('./text-lines.ts')).toTextLines : undefined
  const mask = makeMask(accessTokens)
  const file = new LineFile({
    descriptor: 2,
    maxBytes: maxLogBytes,
    tellDropped(lines) {
      logger.warn({ lines }, 'lines of the log were dropped: they were not read in time')
    },
  })
  const sink: LineSink = {
    write(lines) {
      const masked = typeof lines === 'string' ? mask(lines) : lines
      file.write(toText ? toText(Buffer.from(masked).toString()) : masked)
    },
  }
  const logger: Logger = makeLogger(sink, config)
  return {
    logger,
    sink,
    /** Masks tokens in a text. */
    mask,
    /** Number of lines dropped so far. */
    droppedLines: () => file.dropped,
    /**
     * Waits until what is left is written, or cannot be. When the reader takes it too slowly, ends the process by
     * `signal`: an exit would wait for the reader for ever.
     */
    end: (signal: NodeJS.Signals = 'SIGKILL') =>
      withTimeout(file.end(), logEndMs, () => {
        /* c8 ignore next 2: nobody reads the log (test/service/service-log.test.ts); a signal leaves no coverage */
        process.removeAllListeners(signal)
        process.kill(process.pid, signal)
      }),
  }
}

/** Makes a logger that writes to `sink`. */
export function makeLogger(sink: LineSink, { logLevel, logTime }: LoggerConfig): Logger {
  const timestamp = logTime === 'iso' ? pino.stdTimeFunctions.isoTime : pino.stdTimeFunctions.epochTime
  return pino({ level: logLevel, base: { pid: process.pid }, timestamp }, sink)
}
