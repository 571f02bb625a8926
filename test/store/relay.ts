// A relay between a service and its database that breaks or freezes connections on demand.
import { once } from 'node:events'
import { type AddressInfo, createServer, type Server, Socket } from 'node:net'
import type { Test } from 'tap'

/**
 * `before`: the message does not reach the server; `after`: the server's response to it does not reach the client;
 * `panic`: as if the server could not sync its log after it;
 * `crash`: as if a pooler lost the server after it: the next response is an error, then the connection ends;
 * `misspell`: the server refuses its BEGIN, and nothing else;
 * `vanish`: as if the host of the client had lost power: nothing is transferred, and the server is not notified.
 */
export type Fault = 'before' | 'after' | 'panic' | 'crash' | 'misspell' | 'vanish'
/** An ErrorResponse (postgresql.org/docs/current/protocol-message-formats.html). */
const panic = 'E\0\0\0\x21SPANIC\0C58030\0Mno fdatasync\0\0'
type Pair = { client: Socket; server: Socket; cut: () => void }

export class Relay {
  readonly #server: Server
  readonly #target: number
  readonly #pairs = new Set<Pair>()
  #planned: { message: string; fault: Fault; broken: () => void } | undefined
  #frozen = false
  /** Delays what the server sends, as a long distance would. */
  delayMs = 0

  /** `target`: the port of the database. */
  constructor(target: number) {
    this.#target = target
    this.#server = createServer({ pauseOnConnect: true }, (client) => this.#relay(client))
  }

  async listen(port = 0): Promise<number> {
    await once(this.#server.listen(port, '127.0.0.1'), 'listening')
    return (this.#server.address() as AddressInfo).port
  }

  /** Breaks the connection once, at the first message with this text; resolves when it is broken. */
  breakAt(message: string, fault: Fault): Promise<void> {
    return new Promise((broken) => {
      this.#planned = { message, fault, broken }
    })
  }

  /** Stops the transfer, and buffers what is sent meanwhile. */
  freeze(): void {
    this.#frozen = true
    for (const socket of this.#sockets()) socket.pause()
  }

  /** Resumes the transfer, beginning with the buffer. */
  thaw(): void {
    this.#frozen = false
    for (const socket of this.#sockets()) socket.resume()
  }

  /** Closes all connections and accepts no more. */
  close(): void {
    this.#server.close()
    for (const { cut } of this.#pairs) cut()
  }

  #sockets(): Socket[] {
    return [...this.#pairs].flatMap(({ client, server }) => [client, server])
  }

  #relay(client: Socket): void {
    const server = new Socket().connect(this.#target, '127.0.0.1')
    const cut = () => {
      client.destroy()
      server.destroy()
      this.#pairs.delete(pair)
    }
    const pair = { client, server, cut }
    this.#pairs.add(pair)
    for (const socket of [client, server]) socket.on('error', cut).on('close', cut)
    const forward = (data: Buffer) => {
      if (this.delayMs > 0) setTimeout(() => client.write(data), this.delayMs)
      else client.write(data)
    }
    const fail: Record<Fault, (data: Buffer) => void> = {
      before: cut,
      after: (data) => {
        server.write(data)
        server.off('data', forward).once('data', cut)
      },
      panic: (data) => {
        server.write(data)
        server.off('data', forward).on('data', (answer) => {
          const committed = answer.indexOf('COMMIT\0')
          if (committed === -1) return forward(answer)
          client.write(answer.subarray(0, committed - 5))
          client.end(panic)
        })
      },
      crash: (data) => {
        server.write(data)
        server.off('data', forward).once('data', () => client.end(panic))
      },
      misspell: (data) => server.write(data.toString('latin1').replace('BEGIN', 'BEGUN'), 'latin1'),
      vanish: () => {
        for (const event of ['close', 'error']) client.off(event, cut)
        client.on('error', () => {})
        server.off('data', forward).pause()
      },
    }
    client.on('data', (data) => {
      const planned = data.includes(this.#planned?.message ?? '\0\0never') ? this.#planned : undefined
      if (!planned) return server.write(data)
      this.#planned = undefined
      fail[planned.fault](data)
      planned.broken()
    })
    server.on('data', forward)
    if (this.#frozen) server.pause()
    else client.resume()
  }
}

/** Starts a relay to the database at a URL; resolves to the relay and its URL. */
export async function startRelay(t: Test, url: string): Promise<{ relay: Relay; url: string; port: number }> {
  const target = new URL(url)
  const relay = new Relay(Number(target.port))
  const port = await relay.listen()
  t.teardown(() => relay.close())
  target.port = String(port)
  return { relay, url: target.href, port }
}
