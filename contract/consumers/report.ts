// Reports the results of a consumer to the check that started it, as one line of JSON on stdout.
import { deepStrictEqual } from 'node:assert'

const [url = '', token = ''] = process.argv.slice(2)
const failures: string[] = []
let cases = 0
let explained = 0

/** The URL of the service, and a valid token. */
export const service = { url, token }

/** Compares an actual value with the expected one. */
export function expect(what: string, actual: unknown, expected: unknown): void {
  cases += 1
  try {
    deepStrictEqual(actual, expected)
  } catch {
    failures.push(
      `${what}: ${JSON.stringify(actual)?.slice(0, 200)}, not ${JSON.stringify(expected).slice(0, 200)}`,
    )
  }
}

/** Counts a known deviation. */
export function explain(): void {
  cases += 1
  explained += 1
}

/** Prints the report. */
export const printReport = () => console.log(JSON.stringify({ cases, failures, explained }))
