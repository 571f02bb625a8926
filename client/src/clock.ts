// Abort signals with a time limit.

/** The longest delay of a timer; a longer one fires at once. */
export const longestMs = 2 ** 31 - 1

/** `start` sets the time limit, from now; `stop` removes it; `end` also detaches the signal from its parent. */
export type Clock = {
  signal: AbortSignal
  start: (ms: number) => void
  stop: () => void
  end: () => void
}

/** Creates a signal that is aborted with its parent, or at its time limit. */
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
