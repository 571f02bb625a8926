// Stands between a service and its database, and breaks the connection at a moment of the test's choice.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, Socket } from 'node:net'
import type { Test } from 'tap'

/** `before`: the message does not reach the server; `after`: the server's answer to it does not reach the client. */
export type Fault = 'before' | 'after'

export class Relay {
  readonly #server: Server
  readonly #target: number
  readonly #sockets = new Set<Socket>()
  #planned: { message: string; fault: Fault; broken: () => void } | undefined

  /** `target`: the port of the database. */
  constructor(target: number) {
    this.#target = target
    this.#server = createServer((client) => this.#relay(client))
  }

  async listen(port = 0): Promise<number> {
    await once(this.#server.listen(port, '127.0.0.1'), 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  /** Breaks the connection once, at the first message with this text; resolves when it has. */
  breakAt(message: string, fault: Fault): Promise<void> {
    return new Promise((broken) => {
      this.#planned = { message, fault, broken }
    })
  }

  /** Cuts all connections and takes no more. */
  close(): void {
    this.#server.close()
    for (const socket of this.#sockets) socket.destroy()
  }

  #relay(client: Socket): void {
    const server = new Socket().connect(this.#target, '127.0.0.1')
    const cut = () => {
      client.destroy()
      server.destroy()
    }
    for (const socket of [client, server]) {
      this.#sockets.add(socket)
      socket.on('error', cut).on('close', cut)
    }
    client.on('data', (data) => {
      const planned = data.includes(this.#planned?.message ?? '\0\0never') ? this.#planned : undefined
      if (planned) this.#planned = undefined
      if (planned?.fault === 'before') cut()
      else server.write(data)
      if (planned?.fault === 'after') server.off('data', forward).once('data', cut)
      planned?.broken()
    })
    const forward = (data: Buffer) => client.write(data)
    server.on('data', forward)
  }
}

/** Starts a relay to the database at a URL; resolves to it and the URL that leads through it. */
export async function startRelay(t: Test, url: string): Promise<{ relay: Relay; url: string; port: number }> {
  const target = new URL(url)
  const relay = new Relay(Number(target.port))
  const port = await relay.listen()
  t.teardown(() => relay.close())
  target.port = String(port)
  return { relay, url: target.href, port }
}
