// The same load from autocannon, for whoever wants to check the bench's own generator against a known one.
import autocannon from 'autocannon'
import type { Job, Result } from './job.ts'

/** Runs for `ms`, in whole seconds. */
export async function runAutocannon({
  url,
  request,
  connections,
  ms,
}: Job & { ms: number }): Promise<Result> {
  const { method, path, headers, status } = request
  const posted = method === 'POST'
  const result = await autocannon({
    url: url + path,
    method,
    headers: posted ? { ...headers, 'content-type': 'application/json' } : headers,
    ...(posted && { body: JSON.stringify({ name: 'Black alder [<id>]', tag: 'Alnus glutinosa' }) }),
    idReplacement: posted,
    connections,
    duration: Math.max(1, Math.round(ms / 1000)),
  })
  if (result.errors > 0 || (status === 200 && result.non2xx > 0))
    throw new Error(`${url} answered ${result.non2xx} requests otherwise, and failed ${result.errors}`)
  const { p50, p99 } = result.latency
  return { answers: result.requests.total, ms: result.duration * 1000, p50Ms: p50, p99Ms: p99 }
}
