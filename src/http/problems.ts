// Every error answer: from a thrown error, a bad URL or a broken socket to problem details (RFC 9457).
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { Problem } from '../../schemas/problem.ts'
import { type ProblemTypeName, problemTypes } from '../../schemas/problem-types.ts'
import { maxBodyBytes } from '../limits.ts'
import { type Lost, StoreUnavailable } from '../store/store.ts'
import type { Exchange } from './exchange.ts'
import type { FailureLog } from './failure-log.ts'
import { exchangeOf } from './in-flight.ts'
import { invalid, type ProblemCode, ProblemError } from './problem-error.ts'
import { statusTexts } from './status-texts.ts'
import { findFaults } from './validation.ts'

/** What a code means to a client: a type of problem, or no more than a status. */
const kinds: Record<ProblemCode, ProblemTypeName | number> = {
  invalid: 'invalid-request',
  unauthorized: 401,
  forbidden: 403,
  'not-found': 404,
  'method-not-allowed': 405,
  timeout: 408,
  conflict: 'id-conflict',
  'precondition-failed': 'precondition-failed',
  'too-large': 413,
  'rate-limited': 'rate-limited',
  'auth-limited': 'rate-limited',
  'uri-too-long': 414,
  'unsupported-media-type': 415,
  'expectation-failed': 417,
  'headers-too-large': 431,
  internal: 500,
  unavailable: 503,
  'nothing-added': 'nothing-added',
  'outcome-unknown': 'outcome-unknown',
  unread: 'unread',
  overloaded: 'overloaded',
}

/** What a client is told when the store could not do what was asked: what became of it, and nothing of the inside. */
const lost: Record<Lost, [ProblemCode, string]> = {
  'nothing-added': ['nothing-added', 'The store cannot take plants now; nothing was added.'],
  unknown: [
    'outcome-unknown',
    'The store stopped while it worked on the request; whether the plant was added is unknown.',
  ],
  unread: ['unread', 'The store cannot be read now.'],
  overloaded: ['overloaded', 'Too many requests are at work already; nothing was changed.'],
}

const retryAfter = { 'retry-after': '1' }

/** What the framework's own errors mean to a client. */
const frameworkErrors: Record<string, [ProblemCode, string]> = {
  FST_ERR_BAD_URL: ['invalid', 'The path is not a valid URL path.'],
  FST_ERR_MAX_PARAM_LENGTH: ['not-found', 'There is nothing at this path.'],
  FST_ERR_CTP_BODY_TOO_LARGE: ['too-large', 'The body is larger than 16 KiB.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported-media-type', 'The body must be application/json.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['invalid', 'The body is not as long as Content-Length says.'],
  FST_STATIC_FORBIDDEN_PATH: ['not-found', 'There is nothing at this path.'],
}

export type DescribeProblem = (error: ProblemError) => {
  status: number
  problem: Problem
  headers: Record<string, string>
}

/** Makes the body and headers of problems. The pages of their types are below `basePath`, which ends with a slash. */
export function makeDescribeProblem(basePath: string): DescribeProblem {
  return (error) => {
    const kind = kinds[error.code]
    const about =
      typeof kind === 'number'
        ? { type: 'about:blank', title: statusTexts[kind] as string, status: kind }
        : { type: `${basePath}problems/${kind}`, ...titled(kind) }
    const problem: Problem = { ...about, detail: error.message }
    if (error.code === 'invalid') problem.errors = error.errors ?? [{ code: 'format', detail: error.message }]
    const headers = {
      'content-type': 'application/problem+json',
      'cache-control': 'no-store',
      ...(about.status === 503 && retryAfter),
      ...error.headers,
    }
    return { status: about.status, problem, headers }
  }
}

function titled(name: ProblemTypeName): Pick<Problem, 'title' | 'status'> {
  const { title, status } = problemTypes[name]
  return { title, status }
}

/** Makes the one error handler. What is not a client's fault is logged, and answered with a fixed sentence. */
export function makeErrorHandler(failures: FailureLog, describeProblem: DescribeProblem) {
  return function handleError(error: Error, request: FastifyRequest, reply: FastifyReply): void {
    const known = toProblem(error, request)
    const exchange = exchangeOf(request)
    exchange.problem = known.code
    const { status, problem, headers } = describeProblem(known)
    if (status >= 500) failures.failed(error, exchange)
    if (status === 413) reply.raw.statusMessage = problem.title
    reply
      .code(status)
      .headers({ ...headers, connection: keepConnection(exchange) })
      .send(Buffer.from(JSON.stringify(problem)))
  }
}

/**
 * What a problem says of its connection. A body that nobody reads is dropped when it is small; a larger one, and one
 * that the client holds back until it is told to go on, ends the connection (RFC 9110, section 10.1.1).
 */
function keepConnection(exchange: Exchange): 'keep-alive' | 'close' {
  const { via, reply } = exchange
  const { headers, complete, httpVersionMinor } = exchange.raw
  const isHeldBack = headers.expect !== undefined && httpVersionMinor > 0
  const isLarge =
    headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > maxBodyBytes
  if (!complete && (isHeldBack || isLarge)) via.endAfter(exchange)
  return reply.raw.shouldKeepAlive ? 'keep-alive' : 'close'
}

function toProblem(error: Error, request: FastifyRequest): ProblemError {
  if (error instanceof ProblemError) return error
  if (error instanceof StoreUnavailable) return new ProblemError(...lost[error.outcome])
  const { validation, code } = error as FastifyError
  if (validation) return invalid(findFaults(request, request.body))
  if (code?.startsWith('FST_BEARER_AUTH_')) return unauthorized(request)
  const [known, detail] = frameworkErrors[code] ?? clientFault(error as FastifyError)
  return new ProblemError(known, detail)
}

/** RFC 6750, section 3.1: a request without credentials of this scheme is told no error code. */
function unauthorized({ headers }: FastifyRequest): ProblemError {
  const challenge = 'Bearer realm="plant-store"'
  return /^bearer( |$)/i.test(headers.authorization ?? '')
    ? new ProblemError('unauthorized', 'The token is not valid.', {
        headers: { 'www-authenticate': `${challenge}, error="invalid_token"` },
      })
    : new ProblemError('unauthorized', 'The request carries no bearer token.', {
        headers: { 'www-authenticate': challenge },
      })
}

/** An error that the client caused (it went away in mid-body, asked for an impossible range), or one of ours. */
function clientFault({ statusCode = 500 }: FastifyError): [ProblemCode, string] {
  return statusCode >= 400 && statusCode < 500
    ? ['invalid', 'The request cannot be met as it is, or ended too early.']
    : ['internal', 'The service failed; the fault is ours.']
}
