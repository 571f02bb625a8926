// The address of a client: that of its connection, or the one that a trusted proxy names.
import type { IncomingMessage } from 'node:http'
import proxyAddr from '@fastify/proxy-addr'
import ipaddr from 'ipaddr.js'
import type { Logger } from 'pino'
import type { Config } from '../../config/load-config.ts'
import { forwardedWindowMs } from '../../limits.ts'
import { Throttle } from '../../logging/throttle.ts'

const ignored =
  'X-Forwarded-For is ignored because TRUST_PROXY is off; if a proxy sends it, set TRUST_PROXY to the address of the proxy'

/** TRUST_PROXY: makes a function that returns the address of the client of a request. */
export function makeAddressOf(trustProxy: Config['trustProxy'], logger: Logger) {
  if (trustProxy !== false) {
    const trust = trustProxy === true ? () => true : proxyAddr.compile(trustProxy.split(','))
    const isTrusted = (address: string, hop: number) => trust(withoutPort(address), hop)
    return (request: IncomingMessage) => withoutPort(proxyAddr(request, isTrusted))
  }
  const warnings = new Throttle(1, undefined, forwardedWindowMs)
  return ({ headers, socket }: IncomingMessage) => {
    if (headers['x-forwarded-for'] !== undefined && warnings.take()) logger.warn(ignored)
    return socket.remoteAddress as string
  }
}

/** Removes the port that some proxies add. */
function withoutPort(address: string): string {
  return address.replace(/^(?:\[([^\]]*)\]|([\d.]+))(?::\d+)?$/, '$1$2')
}

/** The network shared by clients whose proxy hides their addresses. */
const nowhere = 'nowhere'

/** The network that counts as one client: an IPv4 address, or the /64 that an IPv6 host has for itself. */
export function networkOf(address: string): string {
  if (!ipaddr.isValid(address)) return nowhere
  const parsed = ipaddr.process(address)
  if (parsed instanceof ipaddr.IPv4) return parsed.toString()
  return parsed.parts
    .slice(0, 4)
    .map((part) => part.toString(16))
    .join(':')
}
