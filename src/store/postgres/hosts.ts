// Reads `postgres://` URLs: their servers and parameters.

const sslModes = ['disable', 'no-verify', 'prefer', 'require', 'verify-ca', 'verify-full']
/**
 * Parameters that pg supports and our sessions do not set. It ignores others silently: with a misspelt sslmode,
 * passwords would be sent without encryption.
 */
const parameters = [
  ...['sslmode', 'sslrootcert', 'sslcert', 'sslkey', 'sslnegotiation', 'uselibpqcompat'],
  ...['user', 'password', 'host', 'port', 'application_name', 'options'],
]

/** The fault of a URL, as the end of a sentence, without values, which may be passwords. */
export function findUrlFault(url: string): string | undefined {
  const urls = splitHosts(url)
  // An unescaped `?` or `#` in a password would turn its rest into parameters.
  if (urls.some((one) => !URL.canParse(one) || /[?#].*@/.test(one)))
    return 'must be like postgres://USER:PASSWORD@HOST:5432,HOST:5432/DATABASE, with / ? # % of a password percent-encoded'
  const given = new URL(urls[0] as string).searchParams
  const ports = [given.get('port') ?? '', ...urls.map((one) => new URL(one).port)]
  if (!ports.every(isPort)) return 'has a port that is not from 1 to 65535'
  const unknown = [...given.keys()].find((name) => !parameters.includes(name))
  if (unknown !== undefined) return `has the unknown parameter ${unknown}; there are ${parameters.join(', ')}`
  if (!sslModes.includes(given.get('sslmode') ?? 'disable'))
    return `has an unknown sslmode; there are ${sslModes.join(', ')}`
  return undefined
}

/** True for a port, or an empty text, which means the default one. */
function isPort(text: string): boolean {
  return text === '' || (/^[1-9]\d{0,4}$/.test(text) && Number(text) <= 65_535)
}

/** Splits a URL into one per server, as pg needs. */
export function splitHosts(url: string): string[] {
  const [, start, hosts, end] = /^(\w+:\/\/(?:[^/]*@)?)([^/?]*)(.*)$/s.exec(url) as string[]
  return (hosts as string).split(',').map((host) => `${start}${host}${end}`)
}
