// Examples of all bodies in the contract: accepted requests, and responses of the service.
import { NewPlant, Plant } from './plant.ts'
import type { Fault } from './problem-details.ts'
import { describeProblem, type KnownProblem, problems } from './problems.ts'

type Example = { summary: string; value: unknown }

/** The examples of an operation: request bodies, and responses by status. */
type OperationExamples = {
  request?: Record<string, Example>
  responses: Record<number, Record<string, Example>>
}

const bodyFaults: Fault[] = [
  { code: 'unknown', detail: 'is not a known member', pointer: '/colour' },
  { code: 'length', detail: 'must have at least 1 character', pointer: '/name' },
  { code: 'type', detail: 'must be a string', pointer: '/tag' },
]
const queryFaults: Fault[] = [{ code: 'range', detail: 'must be at least 0', parameter: 'limit' }]

/** Builds the examples, by operation id. `basePath` ends with a slash. */
export function makeExamples(basePath: string): Record<string, OperationExamples> {
  const show = (problem: KnownProblem) => {
    return { summary: problem.detail, value: describeProblem(problem, basePath) }
  }
  const faulty = (errors: Fault[]) => {
    const { summary, value } = show(problems.faults(errors.length))
    return { summary, value: { ...value, errors } }
  }
  const errors = {
    401: { missing: show(problems.noToken), invalid: show(problems.badToken) },
    408: { late: show(problems.timeout) },
    414: { long: show(problems.urlTooLong) },
    429: { rate: show(problems.rate) },
    431: { large: show(problems.headTooLarge) },
    500: { fault: show(problems.internal) },
  }
  const unread = { unread: show(problems.unread), overloaded: show(problems.overloaded) }
  return {
    createPlant: {
      request: {
        withoutId: { summary: 'Without an id', value: NewPlant.examples[0] },
        withId: { summary: 'With an id: a retry is safe', value: NewPlant.examples[1] },
      },
      responses: {
        ...errors,
        200: { plant: { summary: 'The plant that was added', value: NewPlant.examples[0] } },
        400: { body: faulty(bodyFaults) },
        403: { scope: show(problems.noScope('plants:write')) },
        409: { conflict: show(problems.idTaken) },
        413: { large: show(problems.bodyTooLarge) },
        415: {
          type: show(problems.notJson),
          charset: show(problems.charset),
          encoding: show(problems.contentEncoding),
        },
        503: {
          nothingAdded: show(problems['nothing-added']),
          outcomeUnknown: show(problems.unknown),
          ...unread,
        },
      },
    },
    listPlants: {
      responses: {
        ...errors,
        200: {
          plants: {
            summary: 'Two plants',
            value: [NewPlant.examples[0], Plant.examples[0]],
          },
          empty: { summary: 'No plants', value: [] },
        },
        400: { query: faulty(queryFaults) },
        403: { scope: show(problems.noScope('plants:read')) },
        503: unread,
      },
    },
  }
}
