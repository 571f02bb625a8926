// Connections by the network that they come from. When there are too many, the network that has most makes room.
import type { Socket } from 'node:net'
import { networkOf } from './address.ts'
import { Connection, type Peer } from './connection.ts'
import type { Exchange } from './exchange.ts'

export class Peers {
  readonly #peers = new Map<string, Peer>()

  /** Adds a connection. */
  add(socket: Socket): Connection {
    const network = networkFor(socket)
    const peer = this.#peers.get(network) ?? { network, connections: new Set(), idle: new Set() }
    this.#peers.set(network, peer)
    const connection = new Connection(socket, peer)
    peer.connections.add(connection)
    return connection
  }

  remove(connection: Connection): void {
    const { network, connections, idle } = connection.peer
    idle.delete(connection)
    if (connections.delete(connection) && connections.size === 0) this.#peers.delete(network)
  }

  /** Number of connections that can make room. */
  get closable(): number {
    let count = 0
    for (const { connections, idle } of this.#peers.values())
      count += idle.size + [...connections].filter(isUnread).length
    return count
  }

  /**
   * Closes a connection of the network that has most: the one that has been idle longest, or else the one whose answer
   * without a token has waited longest. A network that has neither is passed over. `newcomer`: counts as well. Returns
   * whether there was one.
   */
  makeRoom(newcomer?: Socket): boolean {
    const its = newcomer && networkFor(newcomer)
    let most = 0
    let closed: Connection | undefined
    for (const peer of this.#peers.values()) {
      const size = peer.connections.size + (peer.network === its ? 1 : 0)
      const found = size > most ? findClosable(peer) : undefined
      if (found === undefined) continue
      most = size
      closed = found
    }
    if (closed === undefined) return false
    this.remove(closed)
    // A graceful end would leave unread bytes in the kernel, and a client could mistake a partial answer for the whole.
    if (closed.open.length > 0 || closed.untaken.length > 0) closed.socket.resetAndDestroy()
    else closed.socket.destroy()
    return true
  }
}

function networkFor({ remoteAddress }: Socket): string {
  return networkOf(String(remoteAddress))
}

function findClosable({ connections, idle }: Peer): Connection | undefined {
  for (const longest of idle) return longest
  const startMs = ({ open }: Connection) => (open[0] as Exchange).startMs
  return [...connections].filter(isUnread).sort((a, b) => startMs(a) - startMs(b))[0]
}

/** True when the next answer needs no token, and waits for its client. */
function isUnread({ open: [first] }: Connection): boolean {
  return first?.owner === '' && first.reply.raw.headersSent
}
