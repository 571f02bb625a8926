// An example answer for every response of the contract, as the service gives it when nothing stands before its paths.
import type { Fault, Problem } from './problem.ts'
import { type ProblemTypeName, problemTypes } from './problem-types.ts'

function typed(name: ProblemTypeName, detail: string, errors?: Fault[]): Problem {
  const { title, status } = problemTypes[name]
  return { type: `/problems/${name}`, title, status, detail, ...(errors && { errors }) }
}

function plain(status: number, title: string, detail: string): Problem {
  return { type: 'about:blank', title, status, detail }
}

const alder = { name: 'Alder', tag: 'Alnus' }

/** By the name of the response in `components.responses`, then by the name of the example. */
export const examples = {
  PlantAdded: { plant: alder },
  PlantsListed: { plants: [alder, { name: 'Black alder', tag: 'Alnus glutinosa' }], empty: [] },
  InvalidAddition: {
    body: typed('invalid-request', 'The request has 3 faults.', [
      { code: 'unknown', detail: 'is not an allowed member', pointer: '/colour' },
      { code: 'length', detail: 'must have at least 1 character', pointer: '/name' },
      { code: 'type', detail: 'must be a string', pointer: '/tag' },
    ]),
  },
  InvalidList: {
    query: typed('invalid-request', 'The request has 1 fault.', [
      { code: 'range', detail: 'must be at least 0', parameter: 'limit' },
    ]),
  },
  Unauthorized: {
    missing: plain(401, 'Unauthorized', 'The request carries no bearer token.'),
    invalid: plain(401, 'Unauthorized', 'The token is not valid.'),
  },
  Forbidden: { scope: plain(403, 'Forbidden', 'The token lacks the scope plants:write.') },
  RequestTimeout: { late: plain(408, 'Request Timeout', 'The request did not arrive in time.') },
  IdConflict: {
    conflict: typed('id-conflict', 'A plant with this id already exists with a different name or tag.'),
  },
  OtherList: {
    list: typed('precondition-failed', 'The list is not one that If-Match names.'),
  },
  ConditionalAddition: {
    addition: typed(
      'precondition-failed',
      'Additions are not conditional; nothing was added. An id makes a retry safe.',
    ),
  },
  ContentTooLarge: { large: plain(413, 'Content Too Large', 'The body is larger than 16 KiB.') },
  UriTooLong: { long: plain(414, 'URI Too Long', 'The URL is too long.') },
  UnsupportedMediaType: {
    type: plain(415, 'Unsupported Media Type', 'The body must be application/json.'),
    charset: plain(415, 'Unsupported Media Type', 'The charset must be UTF-8.'),
    encoding: plain(415, 'Unsupported Media Type', 'A content encoding is not understood here.'),
  },
  ExpectationFailed: {
    expectation: plain(417, 'Expectation Failed', 'The only expectation that is understood is 100-continue.'),
  },
  TooManyRequests: {
    rate: typed('rate-limited', 'This token sent too many requests in a short time.'),
    failures: typed('rate-limited', 'Too many requests without a valid token came from this address.'),
  },
  HeadersTooLarge: {
    large: plain(431, 'Request Header Fields Too Large', 'The header section is too large.'),
  },
  InternalError: {
    fault: plain(500, 'Internal Server Error', 'The service failed; the fault is ours.'),
  },
  AdditionUnavailable: {
    nothingAdded: typed('nothing-added', 'The store cannot take plants now; nothing was added.'),
    outcomeUnknown: typed(
      'outcome-unknown',
      'The store stopped while it worked on the request; whether the plant was added is unknown.',
    ),
    unread: typed('unread', 'The store cannot be read now.'),
    overloaded: typed('overloaded', 'Too many requests are at work already; nothing was changed.'),
  },
  ListUnavailable: {
    unread: typed('unread', 'The store cannot be read now.'),
    overloaded: typed('overloaded', 'Too many requests are at work already; nothing was changed.'),
  },
} as const satisfies Record<string, Record<string, unknown>>

/** For the page of each problem type. */
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
