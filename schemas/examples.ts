// An example for every response of the contract, without a base path.
import { NewPlant } from './plant.ts'
import type { Fault, Problem } from './problem.ts'
import { type ProblemTypeName, problems, describeProblem as show } from './problems.ts'

function faulty(errors: Fault[]): Problem {
  return { ...show(problems.faults(errors.length)), errors }
}

const alder = { name: 'Alder', tag: 'Alnus' }

/** Examples of bodies of requests, by the id of the operation. */
export const requestExamples: Record<string, Record<string, { summary: string; value: unknown }>> = {
  createPlant: {
    withoutId: { summary: 'Without an id', value: NewPlant.examples[0] },
    withId: { summary: 'With an id: a retry is safe', value: NewPlant.examples[1] },
  },
}

/** Examples by response in `components.responses`, then by name. */
export const examples = {
  PlantAdded: { plant: alder },
  PlantsListed: { plants: [alder, { name: 'Black alder', tag: 'Alnus glutinosa' }], empty: [] },
  InvalidAddition: {
    body: faulty([
      { code: 'unknown', detail: 'is not an allowed member', pointer: '/colour' },
      { code: 'length', detail: 'must have at least 1 character', pointer: '/name' },
      { code: 'type', detail: 'must be a string', pointer: '/tag' },
    ]),
  },
  InvalidList: {
    query: faulty([{ code: 'range', detail: 'must be at least 0', parameter: 'limit' }]),
  },
  Unauthorized: {
    missing: show(problems.noToken),
    invalid: show(problems.badToken),
  },
  Forbidden: { scope: show(problems.noScope('plants:write')) },
  RequestTimeout: { late: show(problems.late) },
  IdConflict: {
    conflict: show(problems.idTaken),
  },
  OtherList: {
    list: show(problems.otherForm('list')),
  },
  ConditionalAddition: {
    addition: show(problems.conditionalAddition),
  },
  ContentTooLarge: { large: show(problems.bodyTooLarge) },
  UriTooLong: { long: show(problems.urlTooLong) },
  UnsupportedMediaType: {
    type: show(problems.notJson),
    charset: show(problems.charset),
    encoding: show(problems.contentEncoding),
  },
  ExpectationFailed: {
    expectation: show(problems.expectation),
  },
  TooManyRequests: {
    rate: show(problems.rate),
    failures: show(problems.failures),
  },
  HeadersTooLarge: {
    large: show(problems.headTooLarge),
  },
  InternalError: {
    fault: show(problems.ours),
  },
  AdditionUnavailable: {
    nothingAdded: show(problems.nothingAdded),
    outcomeUnknown: show(problems.outcomeUnknown),
    unread: show(problems.unread),
    overloaded: show(problems.overloaded),
  },
  ListUnavailable: {
    unread: show(problems.unread),
    overloaded: show(problems.overloaded),
  },
} as const satisfies Record<string, Record<string, unknown>>

/** What the examples without a problem show; a problem says it in its detail. */
export const summaries: Record<string, string> = {
  plant: 'The plant that was added',
  plants: 'Two plants',
  empty: 'No plants',
}

/** Examples for the page of each problem type. */
export const problemExamples: Record<ProblemTypeName, Problem[]> = {
  'invalid-request': [examples.InvalidAddition.body, examples.InvalidList.query],
  'id-conflict': Object.values(examples.IdConflict),
  'precondition-failed': [examples.OtherList.list, examples.ConditionalAddition.addition],
  'rate-limited': Object.values(examples.TooManyRequests),
  'nothing-added': [examples.AdditionUnavailable.nothingAdded],
  'outcome-unknown': [examples.AdditionUnavailable.outcomeUnknown],
  unread: [examples.ListUnavailable.unread],
  overloaded: [examples.ListUnavailable.overloaded],
}
