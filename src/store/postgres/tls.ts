// Finds connections to PostgreSQL that others could read, or answer in the server's place.
import { isIPv4 } from 'node:net'
import pg from 'pg'
import { StoreRefused } from '../store.ts'

/**
 * The servers, as host:port, that are on other hosts and reached without TLS, or without a look at their certificate, by
 * their URLs and PGSSLMODE.
 */
export function findPlainHosts(urls: string[]): string[] {
  return urls.flatMap((url) => {
    const { host, port, ssl } = makeClient(url)
    const { rejectUnauthorized = true } = Object(ssl)
    const isSafe = ssl && rejectUnauthorized
    return isSafe || isHere(host) ? [] : [`${host}:${port}`]
  })
}

/** Throws StoreRefused when a file that the URL names (sslrootcert, sslcert, sslkey) cannot be read. */
function makeClient(url: string): pg.Client {
  try {
    return new pg.Client({ connectionString: url })
  } catch (error) {
    throw new StoreRefused(`cannot use the database of DATABASE_URL: ${(error as Error).message}`)
  }
}

/** A socket, or this machine's own address. */
function isHere(host: string): boolean {
  if (host.startsWith('/') || host === 'localhost' || host === '::1') return true
  return isIPv4(host) && host.startsWith('127.')
}
