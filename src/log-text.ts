// The text format of the log: one line per line of JSON, in colour on a terminal.
import { styleText } from 'node:util'
import { attempt } from './attempt.ts'

/** Names of pino's levels 10, 20, …, 60. */
const levels = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL']

/** Formats whole lines of JSON as lines of text. */
export function toTextLines(json: string): string {
  // If the mask has replaced digits of a number, the line is no longer JSON.
  return json.replace(/[^\n]+/g, (line) => attempt(() => format(JSON.parse(line))) ?? printable(line))
}

/** A line of pino, or of the access log. */
type Line = { level: number; time: number; msg: unknown; pid: number; err?: { stack?: string } }

function format({ level, time, msg, err, pid: _, ...fields }: Line): string {
  const ms = String(new Date(time).getMilliseconds()).padStart(3, '0')
  const at = paint('dim', `${new Date(time).toTimeString().slice(0, 8)}.${ms}`)
  const color = level >= 50 ? 'red' : level >= 40 ? 'yellow' : 'cyan'
  const severity = paint(color, String(levels[level / 10 - 1]))
  const { method, url, status, ...rest }: Record<string, unknown> = fields
  const isRequest = msg === 'request'
  const request = `${printable(method)} ${printable(url)} ${paintStatus(Number(status))}`
  const head = isRequest ? request : `${severity} ${printable(msg)}`
  const shown = Object.entries(isRequest ? rest : fields)
  const details = shown.map(([name, value]) => `${paint('dim', `${name}=`)}${quote(value)}`)
  const stack = err?.stack?.split('\n').map((line: string) => `\n    ${printable(line)}`) ?? []
  return [at, head, ...details].join(' ') + stack.join('')
}

const paintStatus = (status: number) =>
  paint(status >= 500 ? 'red' : status >= 400 ? 'yellow' : 'green', String(status))

/** Quotes a value that contains spaces, which could be mistaken for more details. */
const quote = (value: unknown) =>
  printable(typeof value === 'string' && /^[^\s"]+$/.test(value) ? value : JSON.stringify(value))

/** Escapes control characters: untrusted strings must not control the terminal or start a line. */
export function printable(value: unknown): string {
  const toHex = (character: string) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`
  return String(value).replace(/\p{Cc}/gu, toHex)
}

/** Colours a string if stderr is a terminal that supports colours and NO_COLOR is not set. */
const paint = (color: Parameters<typeof styleText>[0], text: string) =>
  styleText(color, text, { stream: process.stderr })
