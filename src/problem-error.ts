// An error that becomes the response to a request: a problem from the catalogue.
import type { Fault } from '../schemas/problem-details.ts'
import { type KnownProblem, maxFaults, problems } from '../schemas/problems.ts'

/** `headers`: additional response headers. */
type Details = { errors?: Fault[]; headers?: Record<string, string> }

/** A failure whose response is this problem. */
export class ProblemError extends Error {
  readonly problem: KnownProblem
  readonly details: Details

  constructor(problem: KnownProblem, details: Details = {}) {
    super(problem.detail)
    this.problem = problem
    this.details = details
  }
}

/** Returns the error for a request with faults. It lists up to `maxFaults`. */
export const invalid = (faults: Fault[]) =>
  new ProblemError(problems.faults(faults.length), { errors: faults.slice(0, maxFaults) })
