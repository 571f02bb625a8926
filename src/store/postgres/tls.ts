// Finds connections to PostgreSQL that others could read, or whose server others could impersonate.
import { isIPv4 } from 'node:net'
import pg from 'pg'
import { StoreRefused } from '../store.ts'

/** Servers (host:port) on other hosts that are reached without TLS, or without checking their certificate. */
export function findPlainHosts(urls: string[]): string[] {
  return urls.flatMap((url) => {
    const { host, port, ssl } = makeClient(url)
    const { rejectUnauthorized = true } = Object(ssl)
    const isSafe = ssl && rejectUnauthorized
    return isSafe || isHere(host) ? [] : [`${host}:${port}`]
  })
}

/** Makes a client. Throws StoreRefused when a file in the URL (sslrootcert, sslcert, sslkey) cannot be read. */
function makeClient(url: string): pg.Client {
  try {
    return new pg.Client({ connectionString: url })
  } catch (error) {
    throw new StoreRefused(`cannot use the database of DATABASE_URL: ${(error as Error).message}`)
  }
}

/** True for a socket, and for the machine's own addresses. */
function isHere(host: string): boolean {
  if (host.startsWith('/') || host === 'localhost' || host === '::1') return true
  return isIPv4(host) && host.startsWith('127.')
}
