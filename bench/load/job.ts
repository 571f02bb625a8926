// What the load generator is told to do, and what it says afterwards.

/** One kind of request. `POST` carries a new plant each time. */
export type RequestKind = {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  /** The only status that counts as an answer; another one ends the run. */
  status: number
}

export type Job = { url: string; request: RequestKind; connections: number } & (
  | /** Requests, one after the other on every connection. */ { kind: 'requests'; ms: number }
  | /** The same, sent by autocannon. */ { kind: 'autocannon'; ms: number }
  | /** Whole answers, each on a connection of its own: one each, or for some time. */ {
      kind: 'pull'
      ms?: number
    }
)

export type Result = { answers: number; ms: number; p50Ms: number; p99Ms: number }
