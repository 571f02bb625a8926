// Failures of servers: their messages for operators, and whether a retry may succeed.
import pg from 'pg'
import { StoreRefused, StoreUnavailable } from '../errors.ts'

/**
 * SQLSTATEs of transient failures: a retry, perhaps on another server, may succeed. 0A: a cached plan whose columns have
 * changed, and a serializable transaction on a standby.
 */
const transient = /^(08|0A|25006|25P03|40|53300|55P03|57)/

const untrusted =
  "the server's certificate is not signed by a trusted authority: add sslrootcert=FILE to the URL, where FILE contains the authority's certificate"

/** Advice by SQLSTATE, by TLS error code, or by message for errors of pg without a code. */
const advice: Record<string, string> = {
  '25006': 'it is read-only: default_transaction_read_only is on, or it has become a standby',
  '42501':
    'the role lacks privileges: make it the owner of the database, or grant it CREATE on the schema and all privileges on the tables',
  DEPTH_ZERO_SELF_SIGNED_CERT: untrusted,
  SELF_SIGNED_CERT_IN_CHAIN: untrusted,
  UNABLE_TO_GET_ISSUER_CERT_LOCALLY: untrusted,
  UNABLE_TO_VERIFY_LEAF_SIGNATURE: untrusted,
  'SASL: SCRAM-SERVER-FIRST-MESSAGE: client password must be a string':
    'the server requires a password, but the URL has none',
}

/** Builds the error of one server (host:port/database), with advice for operators. `cause`: the original error. */
export function failureOf(server: string, cause: Error & { code?: string }): Error {
  const todo = advice[cause.code ?? cause.message]
  const reason = cause.message || String(cause.code)
  return new Error(`${server}: ${todo ? `${todo} (${reason})` : reason}`, { cause })
}

/** True if a retry would also fail, because the request itself was refused. */
export function isFinal(error: unknown): boolean {
  const { cause = error } = error as Error
  if ([error, cause].some((one) => one instanceof StoreRefused || one instanceof StoreUnavailable))
    return true
  return cause instanceof pg.DatabaseError && !transient.test(String(cause.code))
}

/** Builds the error for a standby. `isPassive`: it cannot be used while another server is a primary. */
export const standbyError = (isPassive = true) => Object.assign(new Error('it is a standby'), { isPassive })

/**
 * Picks the most useful failure. A refusal (wrong password, missing database) is final only if all other servers also
 * refuse, or are passive standbys: a server that is unreachable may accept a retry.
 */
export function pickFailure(failures: Error[]): Error {
  const isPassive = ({ cause }: Error) => (cause as { isPassive?: boolean } | undefined)?.isPassive
  const refused = failures.every((one) => isFinal(one) || isPassive(one)) && failures.find(isFinal)
  return refused || new Error(failures.map(({ message }) => message).join('; '))
}

const messages = {
  'nothing-added': 'nothing was written',
  unknown: 'the database failed during a commit; it is not known whether the commit succeeded',
  unread: 'the database could not be read',
}

/** Returns a handler for `catch` that throws StoreUnavailable. */
export function refuse(outcome: keyof typeof messages): (cause: unknown) => never {
  return (cause) => {
    if (cause instanceof StoreUnavailable && cause.outcome === 'overloaded') throw cause
    throw new StoreUnavailable(outcome, `${messages[outcome]}: ${(cause as Error).message}`, { cause })
  }
}
