// The servers that a `postgres://` URL names.
import { StoreRefused } from '../store.ts'

/** One URL for each server, the way pg takes them. Throws StoreRefused when the URL names none. */
export function splitHosts(url: string): string[] {
  if (namesServers(url)) return split(url)
  // A database URL can hold a password: the message does not repeat it.
  throw new StoreRefused('DATABASE_URL is not like postgres://USER:PASSWORD@HOST:5432,HOST:5432/DATABASE')
}

/** False also when a password has a `/`, `?` or `#` that is not percent-encoded. */
export function namesServers(url: string): boolean {
  return split(url).every((one) => URL.canParse(one))
}

function split(url: string): string[] {
  const [, start, hosts, end] = /^(\w+:\/\/(?:[^/]*@)?)([^/?]*)(.*)$/s.exec(url) as unknown as [
    string,
    string,
    string,
    string,
  ]
  return hosts.split(',').map((host) => `${start}${host}${end}`)
}
