// The one error that is thrown on purpose. Whoever throws it picks a code; the HTTP layer knows what to answer.
import type { Fault } from '../../schemas/problem.ts'

export type ProblemCode =
  | 'invalid'
  | 'unauthorized'
  | 'forbidden'
  | 'not-found'
  | 'method-not-allowed'
  | 'timeout'
  | 'conflict'
  | 'precondition-failed'
  | 'too-large'
  | 'rate-limited'
  | 'auth-limited'
  | 'uri-too-long'
  | 'unsupported-media-type'
  | 'expectation-failed'
  | 'headers-too-large'
  | 'internal'
  | 'unavailable'
  | 'nothing-added'
  | 'outcome-unknown'
  | 'unread'
  | 'overloaded'

export type ProblemOptions = { errors?: Fault[]; headers?: Record<string, string> }

/** A fault with a code. `detail` is meant for the client: it never speaks of the inside of the service. */
export class ProblemError extends Error {
  readonly code: ProblemCode
  readonly errors: Fault[] | undefined
  readonly headers: Record<string, string>

  constructor(code: ProblemCode, detail: string, options: ProblemOptions = {}) {
    super(detail)
    this.name = 'ProblemError'
    this.code = code
    this.errors = options.errors
    this.headers = options.headers ?? {}
  }
}

/** A request with faults. `detail` defaults to their number. */
export function invalid(errors: Fault[], detail?: string): ProblemError {
  const counted = `The request has ${errors.length} fault${errors.length === 1 ? '' : 's'}.`
  return new ProblemError('invalid', detail ?? counted, { errors })
}
