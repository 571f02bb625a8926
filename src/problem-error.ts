// An error that answers a request with a problem of the catalogue.
import type { Fault } from '../schemas/problem.ts'
import { type KnownProblem, problems } from '../schemas/problems.ts'

/** `headers`: additional headers of the answer. */
type Details = { errors?: Fault[]; headers?: Record<string, string> }

export class ProblemError extends Error {
  readonly problem: KnownProblem
  readonly details: Details

  constructor(problem: KnownProblem, details: Details = {}) {
    super(problem.detail)
    this.problem = problem
    this.details = details
  }
}

/** Makes the error for a request with faults. */
export function invalid(errors: Fault[]): ProblemError {
  return new ProblemError(problems.faults(errors.length), { errors })
}
