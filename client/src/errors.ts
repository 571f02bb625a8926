// What can go wrong: the service says no, or there is no answer that can be used.
import type { components } from './contract.ts'

/** Problem details as the service sends them (RFC 9457). New members may come; disregard what you do not know. */
export type Problem = components['schemas']['Problem']
/** One fault of an invalid request: what is wrong, and where. */
export type Fault = components['schemas']['Fault']

/** The last segment of a problem's `type`; `about:blank` when the status says it all. New kinds may come. */
export type ProblemKind =
  | 'about:blank'
  | 'invalid-request'
  | 'id-conflict'
  | 'rate-limited'
  | 'nothing-added'
  | 'outcome-unknown'
  | 'unread'
  | 'overloaded'
  | (string & {})

/** A request that failed for good: each class says why in its own way. */
export abstract class PlantStoreFailure extends Error {
  /**
   * After a failed `add`: whether the plant may be in the store all the same, because an attempt ended without a clear
   * answer. Then add it again with the same `id`, or look at the end of the list. False means: it was not added.
   */
  mayBeAdded = false
  /** The headers of the last answer, if there was one. */
  headers: Headers | undefined

  /** How the service's log names the request; a browser shows it only when the service allows it. */
  get requestId(): string | undefined {
    return this.headers?.get('x-request-id') ?? undefined
  }
}

/** The service answered with a problem. `message` is for people; `kind` and `problem` are for programs. */
export class PlantStoreError extends PlantStoreFailure {
  /** The problem as the service sent it: `type`, `title`, `status`, `detail`, and `errors` for an invalid request. */
  readonly problem: Problem

  /** Made by `PlantStore`; make one yourself to test your own error handling. */
  constructor(problem: Problem) {
    const { status, title, detail, errors = [] } = problem
    const faults = errors.map((fault) => `${fault.pointer ?? fault.parameter ?? 'request'}: ${fault.detail}`)
    super([`${status} ${title}: ${detail}`, ...faults].join('\n'))
    this.name = 'PlantStoreError'
    this.problem = problem
  }

  /** Which kind of problem it is, for a `switch`: the end of `problem.type`. */
  get kind(): ProblemKind {
    return this.problem.type.split('/').pop() as string
  }
}

/** No usable answer came in time: no connection, one that broke, or an answer that was cut off. `cause` says more. */
export class PlantStoreUnreachable extends PlantStoreFailure {
  /** Made by `PlantStore`; make one yourself to test your own error handling. */
  constructor(cause: unknown, { url = 'its URL', attempts = 1 } = {}) {
    const times = attempts === 1 ? 'one attempt' : `${attempts} attempts`
    super(`The Plant Store at ${url} gave no usable response in ${times}: ${explain(cause)}`, { cause })
    this.name = 'PlantStoreUnreachable'
  }
}

/** The errors of fetch say little: their cause says more. */
function explain(error: unknown): string {
  const { message, cause, code } = error as { message?: string; cause?: unknown; code?: unknown }
  return cause ? explain(cause) : message || String(code)
}
