// The log for people: formats each line of JSON as text.
import { styleText } from 'node:util'

type Line = {
  level: number
  time: number | string
  msg: string
  err?: { stack: string }
  [name: string]: unknown
}

/** By tens of pino's numbers. */
const levels = ['TRACE', 'DEBUG', 'INFO', 'WARN', 'ERROR', 'FATAL']

/** Turns whole lines of JSON into lines of text. */
export function toTextLines(json: string): string {
  return json.replace(/[^\n]+/g, format)
}

/** Formats a line; one that is not JSON, because a mask hit the digits of a number, stays as it is. */
function format(line: string): string {
  let parsed: Line
  try {
    parsed = JSON.parse(line)
  } catch {
    return printable(line)
  }
  return parsed.msg === 'request' ? formatRequest(parsed) : formatMessage(parsed)
}

function formatRequest(line: Line): string {
  const { time, method, url, status, durationMs, bytes, problem, token, remoteAddress, requestId } = line
  const paint = Number(status) >= 500 ? 'red' : Number(status) >= 400 ? 'yellow' : 'green'
  // Quote what others chose, as spaces in it could pass for other parts of the line.
  const owner = String(token).startsWith('oidc:') ? toText(token) : token
  const optional = [problem, owner, toText(remoteAddress)].filter((part) => part !== undefined)
  return [
    formatTime(time),
    printable(method),
    printable(url),
    color(paint, String(status)),
    `${Number(durationMs).toFixed(1)} ms`,
    formatBytes(Number(bytes)),
    ...optional.map(printable),
    color('dim', printable(requestId)),
  ].join(' ')
}

function formatMessage({ level, time, msg, err, pid: _, ...rest }: Line): string {
  const paint = level >= 50 ? 'red' : level >= 40 ? 'yellow' : 'cyan'
  const details = Object.entries(rest).map(
    ([name, value]) => `${color('dim', `${name}=`)}${printable(toText(value))}`,
  )
  const label = color(paint, String(levels[level / 10 - 1]))
  const head = [formatTime(time), label, printable(msg), ...details].join(' ')
  const stack = err?.stack.split('\n').map((line) => `    ${printable(line)}`) ?? []
  return [head, ...stack].join('\n')
}

function toText(value: unknown): string {
  return typeof value === 'string' && /^[^\s"]+$/.test(value) ? value : JSON.stringify(value)
}

/** The local time of day. */
function formatTime(time: number | string): string {
  const at = new Date(time)
  const ms = String(at.getMilliseconds()).padStart(3, '0')
  return color('dim', `${at.toTimeString().slice(0, 8)}.${ms}`)
}

function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
}

/** Escapes control characters: foreign text must neither control the terminal nor begin a line. */
export function printable(value: unknown): string {
  const toHex = (character: string) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`
  return String(value).replace(/\p{Cc}/gu, toHex)
}

/** Colours a text if stderr is a terminal with colours and NO_COLOR is not set. */
function color(name: Parameters<typeof styleText>[0], text: string): string {
  return styleText(name, text, { stream: process.stderr })
}
