// What the load generator is told to do, and what it says afterwards.

/** One kind of request. `POST` carries a new plant each time. */
export type RequestKind = {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  /** The only status that counts as an answer; another one ends the run. */
  status: number
}

/** Instead of the same request over and over: each of these paths in turn, and another request once in `every`. */
export type Mix = { paths: string[]; other: RequestKind; every: number }

export type Job = { url: string; request: RequestKind; connections: number } & (
  | /** Requests, one after the other on every connection, or so many per second on each. */ {
      kind: 'requests'
      ms: number
      perSecond?: number
      mix?: Mix
    }
  | /** The same, sent by autocannon. */ { kind: 'autocannon'; ms: number }
  | /** Whole answers, each on a connection of its own: so many one after the other, or for some time. */ {
      kind: 'pull'
      times?: number
      ms?: number
    }
)

export type Result = { answers: number; ms: number; p50Ms: number; p99Ms: number }
