// Times on the command line: durations like 90d, and dates.
import { InvalidArgumentError } from 'commander'

/** Seconds by unit. */
const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800, y: 31_536_000 }

/** The time at which a token expires, in milliseconds since 1970: with a date, the end of that day (UTC). */
export function parseExpiry(text: string): number {
  const duration = readDuration(text)
  const day = new Date(text)
  // Other forms, and days that do not exist, such as 2030-02-30, are formatted differently.
  const isDay = /^\d{4}-/.test(text) && day.toJSON() === `${text}T00:00:00.000Z`
  const time = duration === undefined ? day.getTime() + 24 * 3_600_000 : Date.now() + duration
  if ((isDay || duration !== undefined) && time > Date.now()) return time
  throw new InvalidArgumentError('Expected a duration such as 90d, or a future date such as 2030-01-31.')
}

/** Formats milliseconds since 1970 as ISO 8601 in UTC; null stays null. */
export function formatTime(ms: number | null): string | null {
  return ms === null ? null : new Date(ms).toISOString()
}

/** A duration in milliseconds. */
export function parseDuration(text: string): number {
  const duration = readDuration(text)
  if (duration !== undefined) return duration
  throw new InvalidArgumentError('Expected a duration such as 24h, or 0s.')
}

/** At most 99,999 years, which a Date can hold. */
function readDuration(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,5})([smhdwy])$/.exec(text) ?? []
  return unit === undefined ? undefined : Number(count) * (units[unit] as number) * 1000
}
