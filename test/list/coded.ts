// Asks as no client library would: with the header lines of the test alone, and for the bytes as they came.
import { once } from 'node:events'
import { type IncomingHttpHeaders, type IncomingMessage, type OutgoingHttpHeaders, request } from 'node:http'
import { brotliDecompressSync, gunzipSync, zstdDecompressSync } from 'node:zlib'
import { token } from '../support/service.ts'

export const decode: Record<string, (bytes: Buffer) => Buffer> = {
  br: brotliDecompressSync,
  zstd: zstdDecompressSync,
  gzip: gunzipSync,
}

export const compressions = Object.keys(decode)

export type Reply = { status: number; headers: IncomingHttpHeaders; body: Buffer }

/** Sends a request with these header lines, and nothing else that a browser would add. */
export async function ask(url: string, headers: OutgoingHttpHeaders, method = 'GET'): Promise<Reply> {
  const asked = request(url, { method, headers, agent: false }).end()
  const [answer] = (await once(asked, 'response')) as [IncomingMessage]
  const chunks: Buffer[] = []
  for await (const chunk of answer) chunks.push(chunk)
  return { status: Number(answer.statusCode), headers: answer.headers, body: Buffer.concat(chunks) }
}

/** The same with the test token, for lists. */
export function askList(url: string, headers: OutgoingHttpHeaders = {}, method = 'GET'): Promise<Reply> {
  return ask(url, { authorization: `Bearer ${token}`, ...headers }, method)
}
