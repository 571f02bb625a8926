// Listens on a host that stands for several addresses with one server. Fastify would make one per address, without our
// handling below the router.
import { lookup } from 'node:dns/promises'
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server } from 'node:net'
import type { FastifyInstance, FastifyListenOptions } from 'fastify'

/** `reusePort`: other threads listen on the same port with this flag; the system spreads the connections. */
export type ListenAddress = { host: string; port: number; reusePort?: boolean }

/**
 * Listens; resolves to the first address. `port` 0 picks a free one for all addresses. Rejects as `listen` of an app
 * does, whichever address fails: a stranger who listens on one of them would be sent tokens.
 */
export async function listen(
  app: FastifyInstance,
  { host, port, reusePort = false }: ListenAddress,
  resolve = resolveHost,
): Promise<AddressInfo> {
  const [first = host, ...others] = await resolve(host)
  const doors: Server[] = []
  let closed: Promise<unknown> | undefined
  app.addHook('preClose', async () => {
    closed = Promise.all(doors.map((door) => once(door.close(), 'close')))
  })
  // Drain their connections before the end, too.
  app.addHook('onClose', async () => void (await closed))
  await app.listen({ host: first, port, reusePort } as FastifyListenOptions)
  const address = app.server.address() as AddressInfo
  // Servers for the further addresses, whose connections the app's own server takes.
  for (const other of others) {
    const door = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
      app.server.emit('connection', socket)
    })
    doors.push(door)
    await once(door.listen({ host: other, port: address.port, reusePort }), 'listening').catch(passMissing)
  }
  return address
}

/** ::1 may be in /etc/hosts without being configured. */
function passMissing(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EADDRNOTAVAIL' && error.code !== 'EAFNOSUPPORT') throw error
}

/** Resolves localhost to its addresses. Other names are left to `listen`, which takes their first address. */
async function resolveHost(host: string): Promise<string[]> {
  if (host !== 'localhost') return [host]
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

/** Rejects when the port is taken: with `reusePort` it would be shared with a foreign service as well. */
export async function refuseTaken({ host, port }: ListenAddress): Promise<void> {
  const probe = createServer()
  await once(probe.listen({ host, port }), 'listening')
  await once(probe.close(), 'close')
}
