// Turns every failure, from a thrown error to a broken socket, into problem details (RFC 9457).
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { describeProblem as describe, type KnownProblem, problems } from '../../schemas/problems.ts'
import { maxBodyBytes } from '../limits.ts'
import { type FailedOutcome, StoreUnavailable } from '../store/errors.ts'
import { IssuerUnavailable } from '../tokens/oidc/issuer.ts'
import type { Challenge } from './access/challenge.ts'
import { toSeconds } from './access/rate-limits.ts'
import { connectionOf } from './connection/connection.ts'
import type { Exchange } from './connection/exchange.ts'
import { exchangeOf } from './connection/in-flight.ts'
import type { FailureLog } from './failure-log.ts'
import { invalid, ProblemError } from './problem-error.ts'
import { findFaults } from './validation.ts'

/** Problems for a store that failed: they tell the outcome, and nothing internal. */
const problemsOf: Record<FailedOutcome, KnownProblem> = {
  'nothing-added': problems.nothingAdded,
  unknown: problems.outcomeUnknown,
  unread: problems.unread,
  overloaded: problems.overloaded,
}

const always = { 'content-type': 'application/problem+json', 'cache-control': 'no-store' }
const retryAfter = { 'retry-after': '1' }

/** Problems for the framework's own errors. */
const frameworkErrors: Record<string, KnownProblem> = {
  FST_ERR_BAD_URL: problems.badPath,
  FST_ERR_MAX_PARAM_LENGTH: problems.nothingHere,
  FST_ERR_CTP_BODY_TOO_LARGE: problems.bodyTooLarge,
  FST_ERR_CTP_INVALID_MEDIA_TYPE: problems.notJson,
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: problems.bodyLength,
  FST_STATIC_FORBIDDEN_PATH: problems.nothingHere,
}

export type DescribeProblem = ReturnType<typeof makeDescribeProblem>

/** Makes the body and headers of problems. The pages of their types are below `basePath`, which ends with a slash. */
export function makeDescribeProblem(basePath: string) {
  return ({ code, message, errors, headers }: ProblemError) => {
    const problem = describe({ code, detail: message }, basePath)
    if (code === 'invalid') problem.errors = errors ?? [{ code: 'format', detail: message, pointer: '' }]
    const { status } = problem
    const all = { ...always, ...(status === 503 && retryAfter), ...headers }
    return { status, problem, headers: all as Record<string, string> }
  }
}

/** Makes the error handler. Internal errors are logged, and answered with a fixed sentence. */
export function makeErrorHandler(
  failures: FailureLog,
  { describeProblem, challenge }: { describeProblem: DescribeProblem; challenge: Challenge },
) {
  return function handleError(error: Error, request: FastifyRequest, reply: FastifyReply): void {
    const known = toProblem(error, request, challenge)
    const exchange = exchangeOf(request)
    exchange.problem = known.code
    const { status, problem, headers } = describeProblem(known)
    if (status >= 500) failures.failed(error, exchange)
    // Node's own phrase is the older "Payload Too Large".
    if (status === 413) reply.raw.statusMessage = problem.title
    reply
      .code(status)
      .headers({ ...headers, connection: keepConnection(exchange) })
      .send(Buffer.from(JSON.stringify(problem)))
  }
}

/**
 * The `Connection` header of a problem. An unread body is dropped when it is small; a larger one, and one
 * that the client holds back until it is told to go on, ends the connection (RFC 9110, section 10.1.1).
 */
function keepConnection(exchange: Exchange): 'keep-alive' | 'close' {
  const { raw, reply } = exchange
  const { headers, complete, httpVersionMinor } = raw
  const isHeldBack = headers.expect !== undefined && httpVersionMinor > 0
  const isLarge =
    headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > maxBodyBytes
  if (!complete && (isHeldBack || isLarge)) connectionOf(raw.socket).endAfter(exchange)
  return reply.raw.shouldKeepAlive ? 'keep-alive' : 'close'
}

function toProblem(error: Error, request: FastifyRequest, challenge: Challenge): ProblemError {
  if (error instanceof ProblemError) return error
  if (error instanceof StoreUnavailable) return new ProblemError(problemsOf[error.outcome])
  if (error instanceof IssuerUnavailable)
    return new ProblemError(problems.noKeys, { headers: { 'retry-after': String(toSeconds(error.retryMs)) } })
  const { validation, code, statusCode = 500 } = error as FastifyError
  if (validation) return invalid(findFaults(request, request.body))
  if (code?.startsWith('FST_BEARER_AUTH_')) return unauthorized(request, challenge)
  // The client's fault (left in mid-body, impossible range), or ours.
  const other = statusCode >= 400 && statusCode < 500 ? problems.brokenOff : problems.ours
  return new ProblemError(frameworkErrors[code] ?? other)
}

/** Makes the 401. Without bearer credentials it has no error code (RFC 6750, section 3.1). */
function unauthorized({ headers }: FastifyRequest, challenge: Challenge): ProblemError {
  const isBearer = /^bearer( |$)/i.test(headers.authorization ?? '')
  return new ProblemError(isBearer ? problems.badToken : problems.noToken, {
    headers: { 'www-authenticate': challenge(isBearer ? 'invalid_token' : undefined) },
  })
}
