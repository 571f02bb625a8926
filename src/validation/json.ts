// I-JSON (RFC 7493): no duplicate member names, no fractions that a double would round to an integer.
import type { Fault } from '../../schemas/problem.ts'

/** Matches texts, numbers and signs in what is known to be JSON; what is between them says nothing of members. */
const tokens = /"[^"\\]*(?:\\.[^"\\]*)*"|[[\]{}:]|[-\d][-+.\deE]*/g

/**
 * Finds the faults of the members of a JSON object in its text: a name given twice (RFC 7493, 2.3), a fraction that a
 * double would round to an integer (2.2), a lone surrogate in a text (2.1).
 */
export function findMemberFaults(text: string, value: object): Fault[] {
  const names: string[] = []
  const faults: Fault[] = []
  let depth = 0
  let latest = ''
  for (const token of text.match(tokens) as string[])
    if (token.startsWith('"')) latest = token
    else if (token === '{' || token === '[') depth++
    else if (token === '}' || token === ']') depth--
    else if (depth > 1) continue
    else if (token === ':') names.push(latest)
    else if (isRounded(token)) faults.push(faultOf(JSON.parse(latest), 'type', 'must be an integer'))
  // UTF-8 has no lone surrogates: only an escape can spell one.
  if (text.includes('\\u'))
    for (const [name, member] of Object.entries(value))
      if (typeof member === 'string' && !member.isWellFormed())
        faults.push(faultOf(name, 'text', 'must have no lone surrogates'))
  return names.length === Object.keys(value).length ? faults : addDuplicates(names, faults)
}

/** A duplicate member has no other fault. */
function addDuplicates(quotedNames: string[], faults: Fault[]): Fault[] {
  const once = new Set<string>()
  const twice = new Set<string>()
  for (const quoted of quotedNames) {
    const name = JSON.parse(quoted)
    if (once.has(name)) twice.add(name)
    else once.add(name)
  }
  const duplicates = [...twice].map((name) => faultOf(name, 'duplicate', 'must be given once'))
  const pointers = new Set(duplicates.map(({ pointer }) => pointer))
  return [...duplicates, ...faults.filter(({ pointer }) => !pointers.has(pointer))]
}

function faultOf(name: string, code: Fault['code'], detail: string): Fault {
  return { code, detail, pointer: `/${escapePointer(name)}` }
}

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
