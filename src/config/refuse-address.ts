// Explains why a server cannot listen, in terms of the settings for its address.
import { ConfigError } from './values.ts'

/** Makes a handler that rethrows a rejection of `listen` as a ConfigError. `prefix`: ADMIN_ for the admin server. */
export function refuseAddress(prefix: string, { host, port }: { host: string; port: number | undefined }) {
  return (error: NodeJS.ErrnoException): never => {
    throw new ConfigError(explain(error))
  }

  function explain({ code, message }: NodeJS.ErrnoException): string {
    const [hostName, portName] = [`${prefix}HOST`, `${prefix}PORT`]
    if (code === 'EADDRINUSE') return `${portName} ${port} is in use; try ${portName}=${nextPort(port)}`
    if (code === 'EACCES') return `${portName} ${port} is not open to this user; try ${portName}=3000`
    if (code === 'ENOTFOUND' || code === 'EAI_AGAIN') return `${hostName} ${host} cannot be resolved`
    if (code === 'EADDRNOTAVAIL') return `${hostName} ${host} is not an address of this machine`
    return `cannot listen on ${hostName} ${host}, ${portName} ${port}: ${message}`
  }
}

function nextPort(port = 0): number {
  return port < 65_535 ? port + 1 : port - 1
}
