// I-JSON (RFC 7493): UTF-8, no duplicate member names, no fractions that a double would round to an integer.
import { isUtf8 } from 'node:buffer'
import type { Fault } from '../../schemas/problem.ts'
import { invalid } from './problem-error.ts'

/** A value, and the faults of members that could not be kept as they were sent. */
export type Parsed = { value: unknown; faults: Fault[] }

const none: Fault[] = []

/**
 * Parses the body of a request. Throws an `invalid` problem for anything but UTF-8 and JSON. The faults are those of
 * the outermost object's members: a name given twice (RFC 7493, 2.3), a fraction that a double would round to an
 * integer (2.2), a lone surrogate in a text (2.1).
 */
export function parseJson(body: Buffer): Parsed {
  if (!isUtf8(body)) throw notJson('is not UTF-8')
  const text = body.toString()
  const value = parse(text)
  const isObject = typeof value === 'object' && value !== null && !Array.isArray(value)
  return { value, faults: isObject ? findMemberFaults(text, value) : none }
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    throw notJson(text.trim() === '' ? 'is empty, expected JSON' : 'is not JSON')
  }
}

/** Faults of the members of a JSON object, from its text. */
export function findMemberFaults(text: string, value: object): Fault[] {
  let faults = none
  let members = 0
  walkMembers(text, {
    name: () => members++,
    number(source, name) {
      if (isRounded(source)) faults = [...faults, { code: 'type', detail: 'must be an integer', ...at(name) }]
    },
  })
  // UTF-8 has no lone surrogates: only an escape can spell one.
  if (text.includes('\\u')) faults = [...faults, ...findSurrogates(value)]
  return members === Object.keys(value).length ? faults : addDuplicates(findDuplicates(text), faults)
}

/** A duplicate member has no other fault. */
function addDuplicates(duplicates: Fault[], faults: Fault[]): Fault[] {
  const isOnce = (fault: Fault) => !duplicates.some(({ pointer }) => pointer === fault.pointer)
  return [...duplicates, ...faults.filter(isOnce)]
}

function findDuplicates(text: string): Fault[] {
  const names = new Set<string>()
  const twice = new Set<string>()
  const note = (name: string) => (names.has(name) ? twice.add(name) : names.add(name))
  walkMembers(text, { name: (quoted) => note(JSON.parse(quoted)), number() {} })
  return [...twice].map((name) => ({
    code: 'duplicate',
    detail: 'must be given once',
    ...at(JSON.stringify(name)),
  }))
}

function findSurrogates(value: object): Fault[] {
  return Object.entries(value)
    .filter(([, text]) => typeof text === 'string' && !text.isWellFormed())
    .map(([name]) => ({ code: 'text', detail: 'must have no lone surrogates', ...at(JSON.stringify(name)) }))
}

type Visitor = { name: (quoted: string) => void; number: (source: string, quotedName: string) => void }

/** Visits the members of the outermost object, and their numbers, in one pass over text that is known to be JSON. */
function walkMembers(text: string, visitor: Visitor): void {
  let depth = 0
  let latest = ''
  for (let i = 0; i < text.length; i++) {
    const code = text.charCodeAt(i)
    if (code === 0x22) {
      const end = endOfString(text, i)
      if (depth === 1) latest = text.slice(i, end + 1)
      i = end
    } else if (code === 0x3a) {
      if (depth === 1) visitor.name(latest)
    } else if (code === 0x7b || code === 0x5b) depth++
    else if (code === 0x7d || code === 0x5d) depth--
    else if (depth === 1 && (code === 0x2d || (code >= 0x30 && code <= 0x39))) {
      number.lastIndex = i
      const [source] = number.exec(text) as unknown as [string]
      visitor.number(source, latest)
      i += source.length - 1
    }
  }
}

function endOfString(text: string, start: number): number {
  let i = start + 1
  while (text.charCodeAt(i) !== 0x22) i += text.charCodeAt(i) === 0x5c ? 2 : 1
  return i
}

const number = /[-+.0-9eE]*/y

/** True for a number that is no integer, but would be one as a double, such as 1.00000000000000000001. */
function isRounded(source: string): boolean {
  return Number.isInteger(Number(source)) && !isInteger(source)
}

/** True when a JSON number, such as 1.50e1, is exactly an integer. */
function isInteger(source: string): boolean {
  const parts = /^-?(\d+)\.?(\d*)[eE]?(.*)$/.exec(source)
  const [, whole, fraction, exponent] = parts as unknown as [string, string, string, string]
  const digits = whole + fraction
  let end = digits.length
  while (digits[end - 1] === '0') end--
  return end === 0 || whole.length + Number(exponent) >= end
}

/** Escapes a name as a token of a JSON Pointer (RFC 6901, section 3), and replaces lone surrogates. */
export function escapePointer(name: string): string {
  return name.toWellFormed().replaceAll('~', '~0').replaceAll('/', '~1')
}

function at(quotedName: string): { pointer: string } {
  return { pointer: `/${escapePointer(JSON.parse(quotedName))}` }
}

function notJson(detail: string): Error {
  return invalid([{ code: 'format', detail, pointer: '' }])
}
