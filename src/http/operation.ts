// An operation of the API. Whatever its method decides stands in its row (src/plants/operations.ts) and is read from there.
import type { TObject, TSchema } from '@sinclair/typebox'
import type { FailedOutcome } from '../store/errors.ts'
import type { Scope } from '../tokens/tokens.ts'

export type Operation = {
  readonly method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE'
  /** The path below the base path. */
  readonly url: string
  readonly scope: Scope
  /**
   * The outcome reported when it times out before its handler says another: `unread` for one that only reads, `unknown`
   * for one that may have changed something.
   */
  readonly late: FailedOutcome
  readonly schema: OperationSchema
}

/** What the contract says of an operation. `headers` are documentation only. */
export type OperationSchema = {
  readonly operationId: string
  readonly summary: string
  readonly description: string
  readonly querystring: TObject
  readonly headers?: TObject
  readonly body?: TSchema
}

/** The methods that an operation answers: HEAD comes with GET (RFC 9110, section 9.3.2). */
export function methodsOf({ method }: Operation): string[] {
  return method === 'GET' ? ['GET', 'HEAD'] : [method]
}

/** All methods that a path may have: documents have GET and HEAD. */
export function listMethods(operations: readonly Operation[]): string[] {
  return [...new Set(['GET', 'HEAD', ...operations.flatMap(methodsOf)])]
}
