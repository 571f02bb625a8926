// Finds connections to PostgreSQL that others could read, or whose server others could impersonate.
import { isIPv4 } from 'node:net'
import pg from 'pg'

/**
 * Servers (host:port) on other hosts that are reached without TLS, or without checking their certificate. Throws when a
 * file in a URL (sslrootcert, sslcert, sslkey) cannot be read.
 */
export function findPlainHosts(urls: string[]): string[] {
  return urls.flatMap((url) => {
    const { host, port, ssl } = new pg.Client({ connectionString: url })
    const { rejectUnauthorized = true } = Object(ssl)
    const isSafe = ssl && rejectUnauthorized
    return isSafe || isHere(host) ? [] : [`${host}:${port}`]
  })
}

/** True for a socket, and for the machine's own addresses. */
function isHere(host: string): boolean {
  if (host.startsWith('/') || host === 'localhost' || host === '::1') return true
  return isIPv4(host) && host.startsWith('127.')
}
