// Errors of the client: the service refused a request, or there was no usable response.
import type { components } from './contract.ts'

/** Problem details as the service sends them (RFC 9457). New members may be added; ignore unknown ones. */
export type Problem = components['schemas']['Problem']
/** One fault of an invalid request: what is wrong, and where. */
export type Fault = components['schemas']['Fault']

/** The last segment of a problem's `type`; `about:blank` if the status alone describes it. New kinds may be added. */
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

/** A request failed and is not retried. The subclass gives the reason. */
export abstract class PlantStoreFailure extends Error {
  /**
   * After a failed `add`: true if the plant may have been added anyway, because the outcome of an attempt is unknown.
   * If true, add it again with the same `id`, or check the end of the list. If false, it was not added.
   */
  mayBeAdded = false
  /** The headers of the last response, if any. */
  headers: Headers | undefined

  /** The id of the request in the log of the service. In a browser it is undefined unless the service exposes it. */
  get requestId(): string | undefined {
    return this.headers?.get('x-request-id') ?? undefined
  }
}

/** The service returned a problem. `message` is for people; `kind` and `problem` are for programs. */
export class PlantStoreError extends PlantStoreFailure {
  /** The problem as the service sent it: `type`, `title`, `status`, `detail`, and `errors` for an invalid request. */
  readonly problem: Problem

  /** `PlantStore` creates these errors; create one to test your own error handling. */
  constructor(problem: Problem) {
    const { status, title, detail, errors = [] } = problem
    const faults = errors.map((fault) => `${fault.pointer ?? fault.parameter ?? 'request'}: ${fault.detail}`)
    super([`${status} ${title}: ${detail}`, ...faults].join('\n'))
    this.name = 'PlantStoreError'
    this.problem = problem
  }

  /** The kind of problem, for a `switch`: the last segment of `problem.type`. */
  get kind(): ProblemKind {
    return this.problem.type.split('/').pop() as string
  }
}

/**
 * No usable response arrived in time: the connection failed or broke, or the response was cut off. `cause` has details.
 */
export class PlantStoreUnreachable extends PlantStoreFailure {
  /** `PlantStore` creates these errors; create one to test your own error handling. */
  constructor(cause: unknown, { url = 'its URL', attempts = 1 } = {}) {
    const times = attempts === 1 ? 'one attempt' : `${attempts} attempts`
    super(`The Plant Store at ${url} gave no usable response in ${times}: ${explain(cause)}`, { cause })
    this.name = 'PlantStoreUnreachable'
  }
}

/** The details of an error of fetch are in its cause. */
function explain(error: unknown): string {
  const { message, cause, code } = error as { message?: string; cause?: unknown; code?: unknown }
  return cause ? explain(cause) : message || String(code)
}
