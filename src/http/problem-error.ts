// The error for a problem of the catalogue: whatever throws it, the HTTP layer answers with that problem.
import type { Fault } from '../../schemas/problem.ts'
import { type KnownProblem, type ProblemCode, problems } from '../../schemas/problems.ts'

export type ProblemOptions = { errors?: Fault[]; headers?: Record<string, string> }

/** A problem of the catalogue as an error. */
export class ProblemError extends Error {
  readonly code: ProblemCode
  readonly errors: Fault[] | undefined
  readonly headers: Record<string, string>

  constructor({ code, detail }: KnownProblem, { errors, headers = {} }: ProblemOptions = {}) {
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
