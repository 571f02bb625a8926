// Waiting for what only asking shows. A loop without a pause would take the processor from what it waits for.
import { setTimeout as sleep } from 'node:timers/promises'

const pauseMs = 20

/** Asks until it is so. */
export async function until(isSo: () => Promise<boolean> | boolean): Promise<void> {
  while (!(await isSo())) await sleep(pauseMs)
}
