// The catalogue of problems. Responses, the contract, its examples and the problem pages are generated from it.
import { joinWords, listFields } from './plant.ts'

/** Maximum size of a request body. */
export const maxBodyBytes = 16 * 1024

/** Maximum number of faults in a problem. */
export const maxFaults = 20

/** The problem types. Each has a page below the base path, with `meaning` and `advice` (Markdown). */
export const problemTypes = {
  'invalid-request': {
    status: 400,
    title: 'Invalid request',
    meaning:
      'The request does not match the contract. Nothing was changed. `errors` lists the faults ' +
      `(at most ${maxFaults}). Each has a \`code\` for programs, a \`detail\` for people, and its location: \`pointer\` (a ` +
      'JSON Pointer into the body, RFC 6901) or `parameter` (a query parameter or header).',
    advice: 'Correct the faults in `errors`, then send the request again. Do not retry it unchanged.',
  },
  'id-conflict': {
    status: 409,
    title: 'Id already taken',
    meaning: `A plant with this \`id\` already exists with a different ${listFields('or', '`')}. Nothing was changed.`,
    advice:
      'Choose another `id`, or leave it out. Sending the same plant with the same `id` is a retry, and returns 200.',
  },
  'rate-limited': {
    status: 429,
    title: 'Too many requests',
    meaning: 'This token has sent more requests than the operator allows. Nothing was changed.',
    advice:
      'Wait for the number of seconds in `Retry-After`, then retry. A retry is safe. `RateLimit` has the number of ' +
      'requests left, and `RateLimit-Policy` the number allowed in each period.',
  },
  'nothing-added': {
    status: 503,
    title: 'Nothing added',
    meaning: 'The store cannot add plants right now. The plant in this request was not added.',
    advice: 'Wait for the number of seconds in `Retry-After`, then retry. A retry is safe.',
  },
  'outcome-unknown': {
    status: 503,
    title: 'Outcome unknown',
    meaning: 'The store failed or timed out during the request. The plant may or may not have been added.',
    advice:
      'With an `id` in the body, retry the same request: the plant is not added twice. ' +
      'Without an `id`, a retry may add the plant twice: check the end of the list first.',
  },
  unread: {
    status: 503,
    title: 'Store not readable',
    meaning:
      'The store cannot be read right now, or the keys that are needed to verify the token are unavailable. Nothing was ' +
      'changed.',
    advice: 'Wait for the number of seconds in `Retry-After`, then retry. A retry is safe.',
  },
  overloaded: {
    status: 503,
    title: 'Overloaded',
    meaning: 'The service has more requests in progress than it can handle. Nothing was changed.',
    advice:
      'Wait for the number of seconds in `Retry-After`, then retry. A retry is safe. Send fewer requests at a time, and ' +
      'read each response promptly.',
  },
} as const satisfies Record<string, Record<'title' | 'meaning' | 'advice', string> & { status: number }>

export type ProblemTypeName = keyof typeof problemTypes
/** The problem types that have a page. */
export const problemTypeNames = Object.keys(problemTypes) as ProblemTypeName[]

/** Lists the known values of `type`. `basePath` ends with a slash. */
export function listProblemTypes(basePath: string): string[] {
  return [...problemTypeNames.map((name) => `${basePath}problems/${name}`), 'about:blank']
}

/** Problems of type about:blank: their status is sufficient (RFC 9110, section 15; RFC 6585). */
const plainTypes = {
  unauthorized: { status: 401, title: 'Unauthorized' },
  forbidden: { status: 403, title: 'Forbidden' },
  'not-found': { status: 404, title: 'Not Found' },
  'method-not-allowed': { status: 405, title: 'Method Not Allowed' },
  timeout: { status: 408, title: 'Request Timeout' },
  'too-large': { status: 413, title: 'Content Too Large' },
  'uri-too-long': { status: 414, title: 'URI Too Long' },
  'unsupported-media-type': { status: 415, title: 'Unsupported Media Type' },
  'headers-too-large': { status: 431, title: 'Request Header Fields Too Large' },
  internal: { status: 500, title: 'Internal Server Error' },
} as const

const allTypes = { ...problemTypes, ...plainTypes }
export type ProblemCode = keyof typeof allTypes
export const problemCodes = Object.keys(allTypes)

/** A problem. `detail` never reveals internals of the service. */
export type KnownProblem = { readonly code: ProblemCode; readonly detail: string }

export const problems = {
  faults: (count: number) =>
    define('invalid-request', `The request has ${count} fault${count === 1 ? '' : 's'}.`),
  notHttp: define('invalid-request', 'This is not a valid HTTP/1.1 request.'),
  badPath: define('invalid-request', 'The path is not a valid URL path.'),
  incomplete: define('invalid-request', 'The request could not be processed, or it ended too early.'),
  noToken: define('unauthorized', 'The request has no bearer token.'),
  badToken: define('unauthorized', 'The token is not valid.'),
  noScope: (scope: string) => define('forbidden', `The token lacks the scope ${scope}.`),
  notFound: define('not-found', 'No resource exists at this path.'),
  methodNotAllowed: (allowed: readonly string[]) =>
    define('method-not-allowed', `This path supports only ${joinWords(allowed, 'and')}.`),
  timeout: define('timeout', 'The request did not arrive in time.'),
  idTaken: define('id-conflict', `A plant with this id already exists with a different ${listFields('or')}.`),
  bodyTooLarge: define('too-large', `The body is larger than ${maxBodyBytes / 1024} KiB.`),
  urlTooLong: define('uri-too-long', 'The URL is too long.'),
  notJson: define('unsupported-media-type', 'The body must be application/json.'),
  charset: define('unsupported-media-type', 'The charset must be UTF-8.'),
  contentEncoding: define('unsupported-media-type', 'The request body must not have a Content-Encoding.'),
  rate: define('rate-limited', 'This token sent too many requests in a short time.'),
  headTooLarge: define('headers-too-large', 'The request headers are too large.'),
  internal: define('internal', 'Internal error.'),
  // The names of the next two, and of `unread` and `overloaded`, equal the outcomes of StoreUnavailable.
  'nothing-added': define('nothing-added', 'The store cannot add plants right now. Nothing was added.'),
  unknown: define(
    'outcome-unknown',
    'The store failed or timed out during the request. It is not known whether the plant was added.',
  ),
  unread: define('unread', 'The store cannot be read right now.'),
  noKeys: define('unread', "The token cannot be verified right now: its issuer's keys are unavailable."),
  overloaded: define('overloaded', 'Too many requests are in progress. Nothing was changed.'),
}

function define(code: ProblemCode, detail: string): KnownProblem {
  return { code, detail }
}

/** Builds the body of a problem. Problem pages are below `basePath`, which ends with a slash. */
export function describeProblem({ code, detail }: KnownProblem, basePath: string) {
  const { status, title } = allTypes[code]
  const type = code in problemTypes ? `${basePath}problems/${code}` : 'about:blank'
  return { type, title, status, detail }
}
