// Lists plants, independently of Fastify: maps the parts of a request to status, headers and body.
import type { Readable } from 'node:stream'
import type { ListQuery } from '../../schemas/plant.ts'
import type { Meter } from '../metrics.ts'
import { invalid } from '../problem-error.ts'
import type { Head, PlantLog } from '../store/engine.ts'
import { type Coding, negotiate } from './codings.ts'
import { isNamed, linkTo, type Range, rangeOf, readCursor } from './names.ts'
import { Pages } from './pages.ts'
import { shareHead } from './shared-head.ts'

/** The parts of a request that select and condition its response. `query` has been validated. */
type ListRequest = { method: string; url: string; query: ListQuery; headers: RequestHeaders }
type RequestHeaders = Partial<Record<'if-none-match' | 'accept-encoding', string | undefined>>

/** `headers`: except the content headers; `body`: absent for a 304 and for HEAD. */
type ListAnswer = { status: 200 | 304; headers: ListHeaders; coding?: Coding; body?: Buffer | Readable }
type ListHeaders = Record<string, string>

/** `path`: the path of the list as clients see it, for `Link`. */
export type ListOptions = { log: PlantLog; path: string; meter: Meter }

/** Returns a function that lists plants. It rejects with ProblemError, or StoreUnavailable: `unread`, `overloaded`. */
export function makeListPlants({ log, path, meter }: ListOptions) {
  const readHead = shareHead(log)
  const pages = new Pages(log, meter)
  /** Most requests are for the same list as the previous request. Caching it saves 5 % of the time of a request. */
  let latest: { head: Head; url: string; range: Range; headers: ListHeaders } | undefined

  return async function listPlants(request: ListRequest): Promise<ListAnswer> {
    const { method, url, query } = request
    const { 'if-none-match': ifNoneMatch, 'accept-encoding': acceptEncoding } = request.headers
    const { limit = Number.POSITIVE_INFINITY } = query
    const start = query.after === undefined ? beginning : readCursor(query.after)
    if (start === undefined) throw badCursor()
    const { after, mark } = start
    const end = after + limit

    const head = await readHead(Number.isSafeInteger(end) ? [after, end] : [after])
    if (head.markOf(after) !== mark) throw badCursor()
    if (latest?.head !== head || latest.url !== url) {
      const range = rangeOf(after, Math.min(end, head.position), head)
      const { etag } = range
      const headers: ListHeaders = { etag, 'cache-control': 'private, no-cache', vary: 'Accept-Encoding' }
      if (range.last < head.position && limit > 0) headers.link = linkTo(range, path, query)
      latest = { head, url, range, headers }
    }
    const { range, headers } = latest

    if (ifNoneMatch !== undefined && isNamed(range.etag, ifNoneMatch)) return { status: 304, headers }

    if (method === 'HEAD') return { status: 200, headers }

    const { coding, bytes } = await pages.get(range, negotiate(acceptEncoding))
    return { status: 200, headers, coding, body: bytes }
  }
}

const beginning = { after: 0, mark: '' }

/** Returns the error for a cursor of another store, or of a plant that was lost. */
function badCursor() {
  const detail = 'must come from the Link header of an earlier response of this store'
  return invalid([{ code: 'format', detail, parameter: 'after' }])
}
