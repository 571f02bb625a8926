// The log on stderr: JSON lines from pino, or text. Writing never blocks: unread lines are buffered up to a limit, then
// dropped and counted. Tokens and passwords are masked, except very short ACCESS_TOKENS.
import { once } from 'node:events'
import { setTimeout as sleep } from 'node:timers/promises'
import pino, { type LoggerOptions } from 'pino'
import sonicBoom, { type SonicBoom } from 'sonic-boom'
import { toTextLines } from './log-text.ts'
import { makeMask } from './mask.ts'
import type { Settings } from './settings.ts'

/** Maximum size of the buffered lines. */
const maxLogBytes = 8 * 2 ** 20
/** Time that a shutdown waits for the reader of the log. */
const logEndMs = 1500
const lineFeed = 0x0a

type LogOptions = Pick<Settings, 'logLevel' | 'logFormat' | 'accessTokens'>

const secretNames = ['authorization', 'password', 'connectionString']
const secretFields = secretNames.flatMap((name) => [name, `*.${name}`, `*.headers.${name}`])

/** Opens the log of the service. `descriptor`: the file to write to. */
export function openLog({ logLevel, logFormat, accessTokens }: LogOptions, descriptor = 2) {
  const isText = logFormat === 'text' || (logFormat === 'auto' && process.stderr.isTTY === true)
  const onDropped = (lines: number) =>
    logger.warn({ lines }, 'log lines were dropped because they were not read in time')
  const file = openLineFile(descriptor, onDropped)
  const sink = {
    /** Writes complete lines of JSON, and copies them before it returns. The caller masks client input. */
    write(lines: Uint8Array | string): void {
      const bytes = Buffer.from(lines)
      file.write(isText ? Buffer.from(toTextLines(bytes.toString())) : bytes)
    },
    /** For pino's `logger.flush`. */
    flush: (done: () => void) => void file.flush().then(done),
  }
  const mask = makeMask(accessTokens)
  const options: LoggerOptions = {
    level: logLevel,
    base: { pid: process.pid },
    redact: { paths: secretFields, censor: '***' },
    // For the log lines of Fastify: the query may contain secrets.
    serializers: {
      req: ({ method, url }) => ({ method, url: url.split(/[?#]/, 1)[0] }),
      // Our messages contain the message of their cause, which pino would append.
      err: (error) =>
        error instanceof Error ? { ...pino.stdSerializers.err(error), message: error.message } : error,
    },
    hooks: { streamWrite: mask },
  }
  const logger = pino(options, sink)
  return {
    logger,
    sink,
    /** Masks tokens, and passwords in URLs. */
    mask,
    /** Number of lines dropped so far. */
    droppedLines: file.dropped,
    /** Waits until all lines are written. If the reader is stuck, ends the process by `signal`: an exit would block. */
    async end(signal: NodeJS.Signals = 'SIGKILL'): Promise<void> {
      const written = file.flush().then(() => true)
      if (await Promise.race([written, sleep(logEndMs, false, { ref: false })])) return
      process.removeAllListeners(signal)
      process.kill(process.pid, signal)
    },
  }
}

/** Opens a file for lines. Once its buffer is empty, `onDropped` is called with the number of dropped lines. */
function openLineFile(descriptor: number, onDropped: (lines: number) => void) {
  let file = open()
  /** Numbers of lines: dropped so far, of these reported, and not yet written. */
  let [dropped, reported, pending] = [0, 0, 0]

  function open(): SonicBoom {
    const opened = new sonicBoom.SonicBoom({
      fd: descriptor,
      contentMode: 'buffer',
      maxLength: maxLogBytes,
      // Without `minLength`, `flush` does nothing.
      minLength: 1,
    })
    opened.on('drop', (lines: Buffer) => {
      drop(countLines(lines))
      // A full buffer is written only after a flush.
      opened.flush()
    })
    opened.on('error', ({ code }: NodeJS.ErrnoException) => {
      if (code !== 'EPIPE') return
      // The reader of a named pipe has closed it; another one may open it later.
      drop(pending)
      file = open()
    })
    opened.on('drain', () => {
      const lines = dropped - reported
      pending = 0
      reported = dropped
      if (lines > 0) onDropped(lines)
    })
    return opened
  }

  function drop(lines: number): void {
    dropped += lines
    pending -= lines
  }

  return {
    dropped: () => dropped,
    write(lines: Buffer): void {
      pending += countLines(lines)
      // The types of sonic-boom allow only strings.
      file.write(lines as Buffer & string)
    },
    /** Resolves once all lines are written or have failed. */
    async flush(): Promise<void> {
      if (pending === 0) return
      const written = once(file, 'drain').catch(() => {})
      // With a callback, `flush` would also sync the file.
      file.flush()
      await written
    },
  }
}

function countLines(bytes: Buffer): number {
  let lines = 0
  for (let at = bytes.indexOf(lineFeed); at >= 0; at = bytes.indexOf(lineFeed, at + 1)) lines++
  return lines
}
