// Waiting for what only asking shows. A loop without a pause would take the processor from what it waits for.
import { setTimeout as sleep } from 'node:timers/promises'

const pauseMs = 20
/** Longer than anything takes that a test waits for. With a deliberate defect, what never comes is what it is to see. */
export const patienceMs = Number(process.env.TEST_PATIENCE_MS ?? 60_000)

/** Asks until it is so. Rejects when it has not come to be so. */
export async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  const endMs = performance.now() + patienceMs
  while (!(await isSo())) {
    if (performance.now() > endMs) throw new Error(`it was not so for ${patienceMs / 1000} s: ${isSo}`)
    await sleep(pauseMs)
  }
}
