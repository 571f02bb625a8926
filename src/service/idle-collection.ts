// Returns memory after a burst. V8 collects garbage when it needs memory, not when it is idle: what a hundred long
// lists left behind would stay for hours.
import { collect } from '../runtime/garbage.ts'

const lookMs = 2000
/** Least growth for a collection, which takes some 20 ms. */
const worthBytes = 32 * 2 ** 20
/** Amount by which the baseline sinks per look: memory in use at a collection may become garbage later. */
const forgottenBytes = 2 ** 20

/** Collects garbage when the heap has grown much since the last time and `isIdle` returns true, until it is closed. */
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
  // V8's own count of external memory is updated only by the collection after the one that freed it.
  const { heapTotal, arrayBuffers } = process.memoryUsage()
  return heapTotal + arrayBuffers
}
