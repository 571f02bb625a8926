// The log for people: formats each line of JSON as text.
import { styleText } from 'node:util'

type Line = {
  level: number
  time: number | string
  msg: string
  err?: { stack: string }
  [name: string]: unknown
}

const levels: Record<number, string> = {
  10: 'TRACE',
  20: 'DEBUG',
  30: 'INFO',
  40: 'WARN',
  50: 'ERROR',
  60: 'FATAL',
}

/** Turns whole lines of JSON into lines of text. */
export function toTextLines(json: string): string {
  return json
    .split('\n')
    .map((line) => (line === '' ? '' : format(line)))
    .join('\n')
}

/** Formats a line; one that is not JSON, because a mask hit the digits of a number, stays as it is. */
function format(line: string): string {
  let parsed: Line
  try {
    parsed = JSON.parse(line)
  } catch {
    return printable(line)
  }
  return formatLine(parsed)
}

function formatLine(line: Line): string {
  return line.msg === 'request' ? formatRequest(line) : formatMessage(line)
}

function formatRequest(line: Line): string {
  const { method, url, status, durationMs, bytes, problem, token, remoteAddress, requestId } = line
  const paint = Number(status) >= 500 ? 'red' : Number(status) >= 400 ? 'yellow' : 'green'
  const took = `${Number(durationMs).toFixed(1)} ms`
  // Quote an issuer's text, as spaces in it could pass for other parts of the line.
  const owner = String(token).startsWith('oidc:') ? toText(token) : token
  const rest = [problem, owner, remoteAddress].filter((part) => part !== undefined).map(printable)
  return [
    formatTime(line),
    printable(method),
    printable(url),
    color(paint, String(status)),
    took,
    formatBytes(Number(bytes)),
    ...rest,
    color('dim', printable(requestId)),
  ].join(' ')
}

function formatMessage({ level, time, msg, err, pid: _, ...rest }: Line): string {
  const paint = level >= 50 ? 'red' : level >= 40 ? 'yellow' : 'cyan'
  const details = Object.entries(rest).map(
    ([name, value]) => `${color('dim', `${name}=`)}${printable(toText(value))}`,
  )
  const head = [formatTime({ time }), color(paint, String(levels[level])), printable(msg), ...details].join(
    ' ',
  )
  return err ? `${head}\n${indent(err.stack)}` : head
}

function toText(value: unknown): string {
  return typeof value === 'string' && /^[^\s"]+$/.test(value) ? value : JSON.stringify(value)
}

function indent(text: string): string {
  const lines = text.split('\n').map((line) => `    ${printable(line)}`)
  return lines.join('\n')
}

/** The local time of day. */
function formatTime({ time }: Pick<Line, 'time'>): string {
  const at = new Date(time)
  const pad = (value: number, length = 2) => String(value).padStart(length, '0')
  const clock = [at.getHours(), at.getMinutes(), at.getSeconds()].map((value) => pad(value)).join(':')
  return color('dim', `${clock}.${pad(at.getMilliseconds(), 3)}`)
}

function formatBytes(bytes: number): string {
  if (bytes < 1000) return `${bytes} B`
  return bytes < 1e6 ? `${(bytes / 1e3).toFixed(1)} kB` : `${(bytes / 1e6).toFixed(1)} MB`
}

/** Escapes control characters: foreign text must neither control the terminal nor begin a line. */
export function printable(value: unknown): string {
  return String(value).replace(
    /\p{Cc}/gu,
    (character) => `\\x${character.charCodeAt(0).toString(16).padStart(2, '0')}`,
  )
}

/** Colours a text if stderr is a terminal with colours and NO_COLOR is not set. */
function color(name: Parameters<typeof styleText>[0], text: string): string {
  return styleText(name, text, { stream: process.stderr })
}
