// Listens on the address in the settings.
import { lookup } from 'node:dns/promises'
import type { FastifyInstance } from 'fastify'
import { SettingError } from './setting-values.ts'

/** `prefix`: prefix of the setting names, such as ADMIN_. */
type Address = { host: string; port: number; prefix?: string }

/**
 * Starts to listen. Resolves to the URL of the app for clients on this machine. `describe`: returns the log message.
 * Rejects with SettingError.
 */
export async function listen(app: FastifyInstance, address: Address, describe: (url: string) => string) {
  const { host, port, prefix = '' } = address
  try {
    // For `localhost` Fastify would start a server per address, but our listeners and limits apply to one server.
    const one = host === 'localhost' ? (await lookup(host, { order: 'ipv4first' })).address : host
    return (await app.listen({ host: one, port, listenTextResolver: describe })).replace('[::]', '[::1]')
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new SettingError(
      code === 'EADDRINUSE'
        ? `${prefix}PORT ${port} is in use; try ${prefix}PORT=${port < 65_535 ? port + 1 : port - 1}`
        : `cannot listen on ${prefix}HOST ${host}, ${prefix}PORT ${port}: ${message}`,
    )
  }
}
