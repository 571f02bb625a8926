// Waiting for what only asking shows. A loop without a pause would take the processor from what it waits for.
import { setTimeout as sleep } from 'node:timers/promises'
import { inspect } from 'node:util'

const pauseMs = 20
/** Longer than anything takes that a test waits for. */
export const patienceMs = 60_000

/**
 * Asks until it is so. Rejects when it has not come to be so, with what was waited for and, where it is given, what there
 * was instead.
 */
export async function until(
  isSo: () => Promise<boolean> | boolean,
  { found }: { found?: () => unknown } = {},
): Promise<void> {
  const endMs = performance.now() + patienceMs
  while (!(await isSo())) {
    if (performance.now() > endMs) {
      const instead = found ? `; found: ${inspect(await found())}` : ''
      throw new Error(`waited ${patienceMs / 1000} s in vain for ${isSo}${instead}`)
    }
    await sleep(pauseMs)
  }
}
