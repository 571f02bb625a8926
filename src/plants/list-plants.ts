// Lists plants: what is asked for comes in, what is to be answered goes out, both without HTTP's machinery.
import type { Readable } from 'node:stream'
import type { ListQuery } from '../../schemas/plant.ts'
import type { Meter } from '../metrics.ts'
import type { Head, PlantLog } from '../store/engine.ts'
import { negotiate } from './codings.ts'
import { etagOf, isNamed, linkTo, type Range, rangeOf, readCursor } from './names.ts'
import { type Page, Pages } from './pages.ts'
import { SharedHead } from './shared-head.ts'

/** `ifNoneMatch`, `acceptEncoding`: the headers of the request. */
export type ListRequest = {
  query: ListQuery
  ifNoneMatch?: string | undefined
  acceptEncoding?: string | undefined
}

/** `body`: absent with 304. */
export type ListAnswer = { status: 200 | 304; headers: Record<string, string>; body?: Page | Readable }

/** A cursor that no list of this store has, or one whose plants the log has lost. */
export const badCursor = Symbol('bad cursor')

/** `path`: of the list as clients see it, for its `Link`. */
export type ListOptions = { log: PlantLog; path: string; meter: Meter }

/** Makes the function that lists plants. It rejects with StoreUnavailable: `unread`, `overloaded`. */
export function makeListPlants({ log, path, meter }: ListOptions) {
  const head = new SharedHead(log)
  const pages = new Pages(log, meter)

  return async function listPlants(request: ListRequest): Promise<ListAnswer | typeof badCursor> {
    const { query, ifNoneMatch, acceptEncoding } = request
    const { limit = Number.POSITIVE_INFINITY } = query
    const start = query.after === undefined ? { position: 0, mark: '' } : readCursor(query.after)
    const end = start.position + limit

    const look = await head.read(Number.isSafeInteger(end) ? [start.position, end] : [start.position])
    if (look.markOf(start.position) !== start.mark) return badCursor
    const range = rangeOf(start.position, Math.min(end, look.position), look)
    const headers = describe(range, look, query)

    if (ifNoneMatch !== undefined && isNamed(etagOf(range), ifNoneMatch)) return { status: 304, headers }

    const { coding, bytes } = await pages.get(range, negotiate(acceptEncoding))
    headers['content-type'] = 'application/json; charset=utf-8'
    if (coding !== 'identity') headers['content-encoding'] = coding
    return { status: 200, headers, body: bytes }
  }

  function describe(range: Range, look: Head, query: ListQuery): Record<string, string> {
    const headers: Record<string, string> = {
      etag: etagOf(range),
      'cache-control': 'private, no-cache',
      vary: 'Accept-Encoding',
    }
    if (range.last < look.position && query.limit !== 0) headers.link = linkTo(range, { path, query })
    return headers
  }
}
