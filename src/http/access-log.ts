// One line a request, written by hand: through a logger's machinery it would be the dearest piece of a request.
import type { Access } from './requests.ts'

/** Anything that buffers text and writes it out in time. */
export type LineSink = { write(text: string): unknown }

/** Makes the function that writes an access line in pino's form. The `Authorization` header is no part of it. */
export function makeAccessLog(sink: LineSink, now: () => number = Date.now): (access: Access) => void {
  const constant = `"pid":${process.pid},"msg":"request"}\n`
  return ({ method, url, status, durationMs, remoteAddress }) => {
    sink.write(
      `{"level":30,"time":${now()},"method":"${method}","url":${quote(url)},"status":${status},` +
        `"durationMs":${durationMs.toFixed(3)},"remoteAddress":${quote(String(remoteAddress))},${constant}`,
    )
  }
}

const plain = /^[\x20\x21\x23-\x5b\x5d-\x7e]*$/

function quote(text: string): string {
  return plain.test(text) ? `"${text}"` : JSON.stringify(text)
}
