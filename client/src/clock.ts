// Signals that end when their time is up.

/** What timers can count to: with more they end at once. */
export const longestMs = 2 ** 31 - 1

/** `start` gives the signal so much time from now, `stop` as much as it needs; `end` lets go of the parent. */
export type Clock = {
  signal: AbortSignal
  start: (ms: number) => void
  stop: () => void
  end: () => void
}

/** Makes a signal that is aborted with its parent, or when its time is up. */
export function makeClock(parent: AbortSignal | undefined): Clock {
  const controller = new AbortController()
  const abort = () => controller.abort(parent?.reason)
  const expire = () => controller.abort(new DOMException('The time is up', 'TimeoutError'))
  let timer: ReturnType<typeof setTimeout> | undefined
  const stop = () => clearTimeout(timer)
  parent?.addEventListener('abort', abort)
  return {
    signal: controller.signal,
    start(ms) {
      stop()
      timer = setTimeout(expire, Math.min(ms, longestMs))
    },
    stop,
    end() {
      stop()
      parent?.removeEventListener('abort', abort)
    },
  }
}
