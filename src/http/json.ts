// JSON as I-JSON (RFC 7493) wants it: UTF-8, no member name twice, no number that would be rounded.
import { isUtf8 } from 'node:buffer'
import { ProblemError } from './problem-error.ts'

/**
 * Parses the body of a request. Throws an `invalid` problem for anything but UTF-8 and JSON, and for an object whose
 * members could not be kept as they are: a name given twice (2.3), a number a double cannot hold (2.2).
 */
export function parseJson(body: Buffer): unknown {
  if (!isUtf8(body)) throw invalid('is not UTF-8', '')
  const text = body.toString()
  const value = parse(text)
  if (typeof value === 'object' && value !== null && !Array.isArray(value))
    checkMembers(text, value as Record<string, unknown>)
  return value
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw invalid(text.trim() === '' ? 'is empty, expected JSON' : 'is not JSON', '')
  }
}

/** One pass over text that is known to be JSON: the members of the outermost object, and the numbers they hold. */
function checkMembers(text: string, value: object): void {
  let depth = 0
  let members = 0
  let name = ''
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) {
      const end = endOfString(text, i)
      if (depth === 1) name = text.slice(i, end + 1)
      i = end
    } else if (code === 0x3a) members += depth === 1 ? 1 : 0
    else if (code === 0x7b || code === 0x5b) depth++
    else if (code === 0x7d || code === 0x5d) depth--
    else if (depth === 1 && (code === 0x2d || (code >= 0x30 && code <= 0x39))) i = checkNumber(text, i, name)
  }
  if (members !== Object.keys(value).length) throw invalid('has a member name twice', '')
}

function endOfString(text: string, start: number): number {
  let i = start + 1
  while (text.charCodeAt(i) !== 0x22) i += text.charCodeAt(i) === 0x5c ? 2 : 1
  return i
}

const number = /[-+.0-9eE]*/y

/** The place of a number's last character. Throws when a double takes it for an integer and it is none. */
function checkNumber(text: string, start: number, name: string): number {
  number.lastIndex = start
  const [source] = number.exec(text) as unknown as [string]
  if (Number.isInteger(Number(source)) && !isInteger(source))
    throw invalid('must be integer', `/${escapePointer(JSON.parse(name))}`)
  return start + source.length - 1
}

/** Whether the text of a JSON number, as in 1.50e1, stands for an integer, exactly. */
function isInteger(source: string): boolean {
  const parts = /^-?(\d+)\.?(\d*)[eE]?(.*)$/.exec(source)
  const [, whole, fraction, exponent] = parts as unknown as [string, string, string, string]
  const digits = whole + fraction
  let end = digits.length
  while (digits[end - 1] === '0') end--
  return end === 0 || whole.length + Number(exponent) >= end
}

/** A name as one step of a JSON Pointer (RFC 6901, section 3). */
export function escapePointer(name: string): string {
  return name.replaceAll('~', '~0').replaceAll('/', '~1')
}

function invalid(detail: string, pointer: string): ProblemError {
  return new ProblemError('invalid', 'The request has 1 fault.', { errors: [{ detail, pointer }] })
}
