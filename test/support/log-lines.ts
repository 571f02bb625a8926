// The log of an app in this process, as objects.
import { once } from 'node:events'
import { PassThrough } from 'node:stream'
import pino, { type Logger } from 'pino'

export type LogLine = { level: number; msg: string; [name: string]: unknown }

export type LogLines = {
  logger: Logger
  lines: LogLine[]
  /** Resolves to the first line that is as asked, as soon as it is there. */
  find(is: (line: LogLine) => boolean): Promise<LogLine>
}

/** Longer than any line takes. */
const patienceMs = 30_000

export function collectLines(): LogLines {
  const lines: LogLine[] = []
  const seen = new PassThrough().resume()
  const write = (text: string) => {
    lines.push(JSON.parse(text))
    seen.emit('line')
  }
  return {
    logger: pino({ level: 'debug' }, { write }),
    lines,
    async find(is) {
      const signal = AbortSignal.timeout(patienceMs)
      for (;;) {
        const found = lines.find(is)
        if (found) return found
        await once(seen, 'line', { signal })
      }
    },
  }
}
