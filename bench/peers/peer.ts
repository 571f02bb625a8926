// How a peer is started: its settings come from the environment, and it says when it is ready.
import type { Server } from 'node:http'
import type { AddressInfo } from 'node:net'

export const host = '127.0.0.1'
export const port = Number(process.env.PORT ?? 0)

/** A setting that a peer cannot do without. Throws when it is absent. */
export function setting(name: string): string {
  const value = process.env[name]
  if (!value) throw new Error(`${name} is not set`)
  return value
}

/** Says where a listening server can be reached. */
export function announce(server: { address(): ReturnType<Server['address']> }): void {
  console.log(`listening on http://${host}:${(server.address() as AddressInfo).port}`)
}
