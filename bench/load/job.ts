// Jobs for the load generator, what it reports, and the plants that it adds.
import { readFileSync } from 'node:fs'

/** One kind of request. `POST` carries a new plant each time. */
export type RequestKind = {
  method: 'GET' | 'POST'
  path: string
  headers: Record<string, string>
  /** The only status that counts as an answer; another one ends the run. */
  status: number
}

/** Requests one after the other on every connection: for `ms`, or a number of `times`. */
export type Job = {
  url: string
  request: RequestKind
  connections: number
  ms: number
  times?: number
  /** How many each connection sends, instead of the next as soon as the last is answered. */
  perSecond?: number
  /** Sent in turn instead of `request`, all with its status. */
  turns?: RequestKind[]
}

export type Result = { answers: number; ms: number; p50Ms: number; p99Ms: number }

type Plant = { name: string; tag: string }

const real = JSON.parse(
  readFileSync(new URL('../../test/fixtures/plants.json', import.meta.url), 'utf8'),
) as Plant[]

/** The plant number `n`: a real name, made different from others by the number. */
export function makePlant(n: number): Plant {
  const { name, tag } = real[n % real.length] as Plant
  return { name: `${name} ${n}`, tag }
}
