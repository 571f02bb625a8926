// Reads `postgres://` URLs: servers, parameters and TLS modes.
import type pg from 'pg'

const sslModes = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full']
/**
 * The supported parameters. Our sessions set others, such as application_name, themselves. pg ignores unknown
 * parameters silently: with a misspelt sslmode, passwords would be sent without encryption.
 */
const known = 'sslmode sslrootcert sslcert sslkey sslnegotiation user password host port options'.split(' ')

/** Returns the fault of a URL, as the end of a sentence, without values, which may be passwords. */
export function findUrlFault(url: string): string | undefined {
  // An unescaped `/`, `?` or `#` in a password would turn the rest of the password into a path or parameters.
  if (splitHosts(url).some((one) => !URL.canParse(one) || /:\/\/[^/?#]*[/?#].*@|^[^?]*#/.test(one)))
    return 'must look like postgres://USER:PASSWORD@HOST:5432,HOST:5432/DATABASE; percent-encode / ? # and % in the password'
  const [, query = ''] = url.split(/\?(.*)/s)
  // Percent-encoded names are unknown: the masks would miss them.
  const names = query.split('&').map((part) => part.split('=', 1)[0])
  const unknown = names.find((name) => name && !known.includes(name))
  if (unknown !== undefined)
    return `has the unsupported parameter ${unknown}; supported are ${known.join(', ')}`
  const isKnown = new URLSearchParams(query).getAll('sslmode').every((mode) => sslModes.includes(mode))
  return isKnown ? undefined : `has an unsupported sslmode; supported are ${sslModes.join(', ')}`
}

/**
 * Splits a URL into one per server, as pg needs. The pattern finds three parts, such as `postgres://user:password@`,
 * `h1:5432,h2` and `/plants?sslmode=verify-full`.
 */
export function splitHosts(url: string): string[] {
  const [, start = '', hosts = '', end = ''] = /^(\w+:\/\/(?:[^/]*@)?)([^/?]*)(.*)$/s.exec(url) ?? []
  return hosts.split(',').map((host) => `${start}${host}${end}`)
}

/** Reads the URL of one server for pg. */
export function readUrl(url: string): pg.ClientConfig {
  // Not a WHATWG URL: the URL of a socket has no host.
  const [start = '', query] = url.split(/\?(.*)/s)
  const given = new URLSearchParams(query)
  // pg treats these modes as verify-full, but prints a nine-line warning.
  if (['prefer', 'require', 'verify-ca'].includes(given.get('sslmode') ?? ''))
    given.set('sslmode', 'verify-full')
  return { connectionString: given.size > 0 ? `${start}?${given}` : start }
}
