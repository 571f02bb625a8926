// Which connections to PostgreSQL anybody on the way could read.
import { isIPv4 } from 'node:net'
import pg from 'pg'

/** The servers, as host:port, that are on other hosts and reached without TLS, by their URLs and PGSSLMODE. */
export function findPlainHosts(urls: string[]): string[] {
  return urls.flatMap((url) => {
    const { host, port, ssl } = new pg.Client({ connectionString: url })
    return ssl || isHere(host) ? [] : [`${host}:${port}`]
  })
}

/** A socket, or this machine's own address. */
function isHere(host: string): boolean {
  if (host.startsWith('/') || host === 'localhost' || host === '::1') return true
  return isIPv4(host) && host.startsWith('127.')
}
