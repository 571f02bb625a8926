// Every error answer: from a thrown error, a bad URL or a broken socket to problem details (RFC 9457).
import { STATUS_CODES } from 'node:http'
import type { ErrorObject } from 'ajv'
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import type { Logger } from 'pino'
import type { Fault, Problem } from '../../schemas/problem.ts'
import { type ProblemCode, ProblemError } from './problem-error.ts'
import { describeFaults } from './validation.ts'

const statuses: Record<ProblemCode, number> = {
  invalid: 400,
  unauthorized: 401,
  forbidden: 403,
  'not-found': 404,
  'method-not-allowed': 405,
  timeout: 408,
  conflict: 409,
  'precondition-failed': 412,
  'too-large': 413,
  'uri-too-long': 414,
  'unsupported-media-type': 415,
  'expectation-failed': 417,
  'headers-too-large': 431,
  internal: 500,
  unavailable: 503,
}

/** What the framework's own errors mean to a client. */
const frameworkErrors: Record<string, [ProblemCode, string]> = {
  FST_ERR_BAD_URL: ['invalid', 'The path is not a valid URL path.'],
  FST_ERR_MAX_PARAM_LENGTH: ['not-found', 'There is nothing at this path.'],
  FST_ERR_CTP_BODY_TOO_LARGE: ['too-large', 'The body is larger than 16 KiB.'],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: ['unsupported-media-type', 'The body must be application/json.'],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ['invalid', 'The body is not as long as Content-Length says.'],
  FST_STATIC_FORBIDDEN_PATH: ['not-found', 'There is nothing at this path.'],
  FST_BEARER_AUTH_MISSING_AUTHORIZATION_HEADER: ['unauthorized', 'The request carries no bearer token.'],
  FST_BEARER_AUTH_INVALID_AUTHORIZATION_HEADER: ['unauthorized', 'The token is not valid.'],
}

/** The body and headers of a problem. */
export function describeProblem(error: ProblemError): {
  status: number
  problem: Problem
  headers: Record<string, string>
} {
  const status = statuses[error.code]
  const title = STATUS_CODES[status] as string
  const problem: Problem = { type: 'about:blank', title, status, detail: error.message }
  if (error.code === 'invalid') problem.errors = error.errors ?? [{ detail: error.message }]
  const headers = {
    'content-type': 'application/problem+json',
    'cache-control': 'no-store',
    ...error.headers,
  }
  return { status, problem, headers }
}

/** Makes the one error handler. What is not a client's fault is logged whole and answered with a fixed sentence. */
export function makeErrorHandler(logger: Logger) {
  return function handleError(
    error: FastifyError | ProblemError,
    request: FastifyRequest,
    reply: FastifyReply,
  ): void {
    const known = toProblem(error, request)
    if (known.code === 'internal') logger.error({ err: error }, 'a request failed')
    const { status, problem, headers } = describeProblem(known)
    // Fastify closes a connection whose body was not read: answers to large bodies would be lost with it.
    reply.removeHeader('connection')
    reply
      .code(status)
      .headers(headers)
      .send(Buffer.from(JSON.stringify(problem)))
  }
}

function toProblem(error: FastifyError | ProblemError, request: FastifyRequest): ProblemError {
  if (error instanceof ProblemError) return error
  if (error.validation) return validationProblem(error, request)
  const [code, detail] = frameworkErrors[error.code] ?? clientFault(error)
  return new ProblemError(code, detail, { headers: code === 'unauthorized' ? challenge(request) : {} })
}

/** The body is checked before the query; a client learns the faults of both at once. */
function validationProblem(error: FastifyError, request: FastifyRequest): ProblemError {
  const part = error.validationContext as string
  const faults = describeFaults(error.validation as ErrorObject[], part)
  const checkQuery = request.getValidationFunction('querystring')
  if (part === 'body' && checkQuery && !checkQuery(request.query))
    faults.push(...describeFaults(checkQuery.errors as ErrorObject[], 'querystring'))
  return invalid(faults)
}

function invalid(errors: Fault[]): ProblemError {
  const detail = `The request has ${errors.length} fault${errors.length === 1 ? '' : 's'}.`
  return new ProblemError('invalid', detail, { errors })
}

/** RFC 6750, section 3: a request without credentials is told no error code. */
function challenge({ headers }: FastifyRequest): Record<string, string> {
  const error = headers.authorization === undefined ? '' : ', error="invalid_token"'
  return { 'www-authenticate': `Bearer realm="plant-store"${error}` }
}

/** An error that the client caused (it went away in mid-body, asked for an impossible range), or one of ours. */
function clientFault({ statusCode = 500 }: FastifyError): [ProblemCode, string] {
  return statusCode >= 400 && statusCode < 500
    ? ['invalid', 'The request cannot be met as it is, or ended too early.']
    : ['internal', 'The service failed; the fault is ours.']
}
