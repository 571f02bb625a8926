// An error that answers a request with a problem of the catalogue.
import type { Fault } from '../schemas/problem.ts'
import { type KnownProblem, type ProblemCode, problems } from '../schemas/problems.ts'

/** `headers`: additional headers of the answer. */
type Details = { errors?: Fault[]; headers?: Record<string, string> }

export class ProblemError extends Error {
  readonly code: ProblemCode
  readonly errors: Fault[] | undefined
  readonly headers: Record<string, string>

  constructor({ code, detail }: KnownProblem, { errors, headers = {} }: Details = {}) {
    super(detail)
    this.name = 'ProblemError'
    this.code = code
    this.errors = errors
    this.headers = headers
  }
}

/** Makes the error for a request with faults. */
export function invalid(errors: Fault[]): ProblemError {
  return new ProblemError(problems.faults(errors.length), { errors })
}
