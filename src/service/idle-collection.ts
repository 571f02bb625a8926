// Gives memory back once a burst is over. V8 collects garbage when more is needed, not when there is nothing to do: what
// a hundred long lists left behind would stay for hours.
import { collect } from '../runtime/garbage.ts'

const lookMs = 2000
/** A collection takes some 20 ms: it has to be worth it. */
const worthBytes = 32 * 2 ** 20
/** Memory in use at a collection may be garbage later: forgetting so much of it per look brings the next within a minute. */
const forgottenBytes = 2 ** 20

/** Collects garbage when the heap has grown by much since the last time and `isIdle` says so. Returns what ends it. */
export function collectWhenIdle(isIdle: () => boolean): { close(): void } {
  const startBytes = heapBytes()
  let keptBytes = startBytes
  const timer = setInterval(() => {
    keptBytes = Math.max(startBytes, keptBytes - forgottenBytes)
    if (!isIdle() || heapBytes() < keptBytes + worthBytes) return
    collect('major')
    keptBytes = heapBytes()
  }, lookMs).unref()
  return { close: () => clearInterval(timer) }
}

function heapBytes(): number {
  // V8's own count of external memory is brought up to date by the collection after the one that freed it.
  const { heapTotal, arrayBuffers } = process.memoryUsage()
  return heapTotal + arrayBuffers
}
