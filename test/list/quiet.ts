// Waiting until a service has stopped reading its store, without looking at the clock.
import { request } from '../support/service.ts'

/** Resolves to how often the store was read, when that has not been for ten turns of its clients' requests. */
export async function quiet(url: string, reads: { count: number }): Promise<number> {
  let before = -1
  while (before !== reads.count) {
    before = reads.count
    for (let turn = 0; turn < 10; turn++) await request(`${url}/plants?limit=0`)
  }
  return reads.count
}
