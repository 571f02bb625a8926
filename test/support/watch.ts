// Checks every response of a server in this process against the contract.
import type { OutgoingHttpHeaders, Server, ServerResponse } from 'node:http'
import { findContractFaults } from './contract.ts'

/** The contract has no paths outside the base path. */
const elsewhere = ''
/** Larger bodies are not checked. */
const maxBytes = 16 * 1024

/** Calls `tell` for each response that contradicts the contract. `basePath` ends with a slash. */
export function watchAnswers(server: Server, basePath: string, tell: (fault: string) => void): void {
  server.prependListener('request', (request, response) => {
    const answer = record(response)
    const path = String(request.url).split('?', 1)[0] as string
    response.once('close', () => {
      // A truncated response is not checked; the client detects it by a reset.
      if (!response.writableFinished) return
      const faults = findContractFaults({
        method: request.method as string,
        path: path.startsWith(basePath) ? path.slice(basePath.length - 1) : elsewhere,
        status: response.statusCode,
        headers: { get: (name) => answer.header(name) },
        // Node drops the body of a response to HEAD.
        body: request.method === 'HEAD' ? '' : answer.body(),
      })
      for (const fault of faults) tell(fault)
    })
  })
}

/** Records the headers and the body of a response. */
function record(response: ServerResponse) {
  const { writeHead, write, end } = response
  let given: OutgoingHttpHeaders = {}
  let bytes = 0
  const chunks: Buffer[] = []

  function keep([chunk, encoding]: unknown[]): void {
    if (typeof chunk !== 'string' && !(chunk instanceof Uint8Array)) return
    bytes += chunk.length
    const charset = typeof encoding === 'string' ? (encoding as BufferEncoding) : undefined
    if (bytes <= maxBytes) chunks.push(Buffer.from(chunk as string, charset))
  }
  // getHeader() does not return headers that were passed to writeHead().
  response.writeHead = (...all: unknown[]) => {
    const headers = all.at(-1)
    if (typeof headers === 'object') given = { ...given, ...headers }
    return writeHead.apply(response, all as never)
  }
  response.write = (...all: unknown[]) => {
    keep(all)
    return write.apply(response, all as never)
  }
  response.end = (...all: unknown[]) => {
    keep(all)
    return end.apply(response, all as never)
  }
  return {
    header(name: string): string | null {
      const value = response.getHeader(name) ?? find(given, name)
      return value === undefined ? null : String(value)
    },
    body: () => (bytes <= maxBytes ? Buffer.concat(chunks).toString() : undefined),
  }
}

function find(headers: OutgoingHttpHeaders, name: string) {
  return Object.entries(headers).find(([key]) => key.toLowerCase() === name.toLowerCase())?.[1]
}
