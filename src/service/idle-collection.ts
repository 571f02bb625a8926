// Gives memory back once a burst is over. V8 collects garbage when more is needed, not when there is nothing to do: what
// a hundred long lists left behind would stay for hours.
import { getHeapStatistics } from 'node:v8'
import { collect } from '../garbage.ts'

const lookMs = 2000
/** A collection takes some 20 ms: it has to be worth it. */
const worthBytes = 32 * 2 ** 20

/** Collects garbage when the heap has grown by much since the last time and `isIdle` says so. Returns what ends it. */
export function collectWhenIdle(isIdle: () => boolean): { close(): void } {
  let keptBytes = heapBytes()
  const timer = setInterval(() => {
    if (!isIdle() || heapBytes() < keptBytes + worthBytes) return
    collect('major')
    keptBytes = heapBytes()
  }, lookMs).unref()
  return { close: () => clearInterval(timer) }
}

function heapBytes(): number {
  const { total_heap_size: heap, external_memory: external } = getHeapStatistics()
  return heap + external
}
