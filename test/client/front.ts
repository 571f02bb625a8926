// A server between a client and the service that fails like a network or a proxy: each fault happens once, in order.
import { once } from 'node:events'
import { createServer, type IncomingMessage, request, type ServerResponse } from 'node:http'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import { listen } from '../support/wire.ts'

/** A response that replaces that of the service. */
export type Canned = { status: number; headers?: Record<string, string>; body?: string }
/**
 * `lost`: the request does not reach the service; `unanswered`: the service responds, but the connection to the client
 * breaks; `half`: the connection breaks after half of the response; `stalled`: it stays open after that half; `silent`:
 * no response, and the connection stays open; undefined: no fault.
 */
export type Fault = 'lost' | 'unanswered' | 'half' | 'stalled' | 'silent' | Canned | undefined
export type Seen = { method: string; url: string; headers: IncomingMessage['headers']; body: string }
export type Front = { url: string; faults: Fault[]; seen: Seen[]; next: () => Promise<void> }

/** Starts a front for the service at a URL, until the test ends. `next` resolves at the next request. */
export async function startFront(t: Test, target: string): Promise<Front> {
  const faults: Fault[] = []
  const seen: Seen[] = []
  const server = createServer(async (incoming, response) => {
    const { method = '', url = '', headers } = incoming
    const body = await buffer(incoming)
    seen.push({ method, url, headers, body: body.toString() })
    server.emit('seen')
    const fault = faults.shift()
    if (fault === 'lost') incoming.socket.destroy()
    else if (typeof fault === 'object') answer(response, fault)
    else if (fault !== 'silent') await forward(target, { incoming, body, response, fault })
  })
  const next = async () => void (await once(server, 'seen'))
  return { url: `http://127.0.0.1:${await listen(t, server)}`, faults, seen, next }
}

function answer(response: ServerResponse, { status, headers = {}, body = '' }: Canned): void {
  response.writeHead(status, headers).end(body)
}

type Exchange = { incoming: IncomingMessage; body: Buffer; response: ServerResponse; fault: Fault }

async function forward(target: string, { incoming, body, response, fault }: Exchange): Promise<void> {
  const { method, headers } = incoming
  const outgoing = request(`${target}${incoming.url}`, { method, headers, agent: false }).end(body)
  const [answered] = (await once(outgoing, 'response')) as [IncomingMessage]
  const content = await buffer(answered)
  if (fault === 'unanswered') return void incoming.socket.destroy()
  response.writeHead(answered.statusCode as number, answered.headers)
  if (fault === undefined) return void response.end(content)
  response.write(content.subarray(0, content.length / 2), () => {
    if (fault === 'half') incoming.socket.destroy()
  })
}
