// Times on the command line: durations like 90d, and dates.
import { InvalidArgumentError } from 'commander'

const daySeconds = 86_400
/** Seconds by unit. */
const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: daySeconds, w: 604_800, y: 31_536_000 }
/** The latest time that a Date can hold, in milliseconds since 1970 (ECMA-262, 21.4.1.1). */
const lastMs = 8.64e15

/** The time at which a token expires, in milliseconds since 1970: with a date, the end of that day (UTC). */
export function parseExpiry(text: string): number {
  const duration = readDuration(text)
  const time = duration === undefined ? readTime(text) : Date.now() + duration
  if (time > Date.now() && time <= lastMs) return time
  throw new InvalidArgumentError(
    'Expected a duration such as 90d, or a future date such as 2030-01-31 or 2030-01-31T12:00Z.',
  )
}

/** Parses a date, or a time with its offset (RFC 3339), of a day that exists. NaN for anything else. */
function readTime(text: string): number {
  const [, date, rest] = /^(\d{4}-\d\d-\d\d)(T.+(?:Z|[+-]\d\d:\d\d))?$/.exec(text) ?? []
  const day = Date.parse(String(date))
  if (Number.isNaN(day) || new Date(day).toISOString().slice(0, 10) !== date) return Number.NaN
  return rest === undefined ? day + daySeconds * 1000 : Date.parse(text)
}

/** Formats milliseconds since 1970 as ISO 8601 in UTC; null stays null. */
export function formatTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

/** A duration in milliseconds. */
export function parseDuration(text: string): number {
  const duration = readDuration(text)
  if (duration !== undefined && Date.now() + duration <= lastMs) return duration
  throw new InvalidArgumentError('Expected a duration such as 24h, or 0s.')
}

function readDuration(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,6})([smhdwy])$/.exec(text) ?? []
  return unit === undefined ? undefined : Number(count) * (units[unit] as number) * 1000
}
