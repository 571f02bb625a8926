// How a consumer tells the check that started it what it saw: one line of JSON on stdout.
import { deepStrictEqual } from 'node:assert'

const [url = '', token = ''] = process.argv.slice(2)
const failures: string[] = []
let cases = 0
let explained = 0

/** The service to ask, and what it takes as a token. */
export const service = { url, token }

/** Compares what came with what should have come. */
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

/** Counts a deviation whose reason is written down. */
export function explain(): void {
  cases += 1
  explained += 1
}

/** Ends the tale. */
export const tell = () => console.log(JSON.stringify({ cases, failures, explained }))
