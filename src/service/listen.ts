// Listening on a host that stands for several addresses: one server serves all of them. Fastify would make another one for
// each, without what is done below the router.
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import type { FastifyInstance, FastifyListenOptions } from 'fastify'

/** `reusePort`: whether other threads, which say so too, listen on the same port; the system spreads the connections. */
export type ListenAddress = { host: string; port: number; reusePort?: boolean }

/** `port` 0 picks a free one, the same for all addresses. Rejects as `listen` does, when the first is not to be had. */
export async function listen(
  app: FastifyInstance,
  { host, port, reusePort = false }: ListenAddress,
  resolve = resolveHost,
): Promise<void> {
  const [first = host, ...others] = await resolve(host)
  const doors: Server[] = []
  const closed: Promise<unknown>[] = []
  app.addHook('preClose', async () => {
    for (const door of doors) closed.push(once(door.close(), 'close'))
  })
  // Their connections are drained before the end, too.
  app.addHook('onClose', async () => {
    await Promise.all(closed)
  })
  await app.listen({ host: first, port, reusePort } as FastifyListenOptions)
  const { port: chosen } = app.server.address() as AddressInfo
  for (const other of others) {
    const door = await openDoor(app, { host: other, port: chosen, reusePort })
    if (door.listening) doors.push(door)
  }
}

/** A name other than localhost is left to `listen`, which takes its first address. */
async function resolveHost(host: string): Promise<string[]> {
  if (host !== 'localhost') return [host]
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

/** A way in: whoever comes through it is served by the app's server. An address that cannot be had has none. */
async function openDoor(app: FastifyInstance, address: ListenAddress): Promise<Server> {
  const door = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    app.server.emit('connection', socket)
  })
  const listening = once(door, 'listening')
  door.listen(address)
  // A machine may know ::1 by name only.
  await listening.catch(() => {})
  return door
}

/** Rejects when somebody listens there already: a port that is shared would be shared with another service as well. */
export async function refuseTaken({ host, port }: ListenAddress): Promise<void> {
  const probe = createServer()
  const listening = once(probe, 'listening')
  probe.listen({ host, port })
  await listening
  await once(probe.close(), 'close')
}
