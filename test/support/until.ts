// Polls for a condition, with pauses so that other processes can run.
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'

const pauseMs = 20
/** The longest wait of a test. */
export const patienceMs = 60_000

/**
 * Resolves when `isSo` returns true. Rejects after the longest wait, with the condition and the result of `found`.
 */
export async function until(
  isSo: () => Promise<boolean> | boolean,
  { found }: { found?: () => unknown } = {},
): Promise<void> {
  const endMs = performance.now() + patienceMs
  while (!(await isSo())) {
    if (performance.now() > endMs) {
      const instead = found ? `; found: ${inspect(await found())}` : ''
      throw new Error(`waited ${patienceMs / 1000} s for ${isSo}${instead}`)
    }
    await sleep(pauseMs)
  }
}
