// The representations of a list: its headers and entity tag in each content coding (RFC 9110, section 8.8.3), and its
// Link to the next page, with a cursor: a position with a keyed hash that only the store can make.
import { createHash, hash } from 'node:crypto'
import { ListQuery } from '../../../../schemas/plant.ts'
import type { Coding } from '../../../http/codings.ts'
import type { Head } from '../../../store/engine.ts'
import type { Epochs } from '../../../store/epochs.ts'
import { codecNames } from '../cache/codec.ts'
import { type LogRange, rangeOf } from '../range.ts'

/** A list in a content coding: its entity tag, and the headers of a 200 and of a 304. */
export type Form = { etag: string; headers: Record<string, string>; headersOf304: Record<string, string> }

/** A list, with its forms, which are made on demand. */
export type Listed = { readonly range: LogRange; form: (coding: Coding) => Form }

/** `path`: the base path as clients see it, which ends with a slash, for the `Link` to the next page. */
export type RepresentationsOptions = { storeId: string; path: string; cursors: Cursors }

/** The parameters of a list, but for the one that the link to the next page replaces. */
const others = Object.keys(ListQuery.properties).filter((name) => name !== 'after') as 'limit'[]

/** Makes a function that describes the list that `query` asks for, from the position `after` of a log. */
export function makeRepresentations({ storeId, path, cursors }: RepresentationsOptions) {
  const etagOf = makeEtags(storeId)
  /** Kept for the next request: while nothing is written, most ask for the same list. */
  let latest: (Listed & { head: Head; after: number; query: ListQuery }) | undefined

  return (head: Head, after: number, query: ListQuery): Listed => {
    if (latest?.head === head && latest.after === after && isSame(latest.query, query)) return latest
    const { limit = Number.POSITIVE_INFINITY } = query
    const range = rangeOf(after, Math.min(after + limit, head.position), head.epochs)
    const link = range.last < head.position && limit > 0 ? linkTo(range, query) : undefined
    const forms: Partial<Record<Coding, Form>> = {}
    const form = (coding: Coding) => {
      forms[coding] ??= describe(range, coding, link)
      return forms[coding]
    }
    latest = { head, after, query, range, form }
    return latest
  }

  function describe(range: LogRange, coding: Coding, link: string | undefined): Form {
    const etag = etagOf(range, coding)
    const headersOf304: Form['headers'] = {
      etag,
      'cache-control': 'private, no-cache',
      vary: 'Accept-Encoding',
    }
    if (link !== undefined) headersOf304.link = link
    const headers: Form['headers'] = { ...headersOf304, 'content-type': 'application/json' }
    if (coding !== 'identity') headers['content-encoding'] = coding
    return { etag, headers, headersOf304 }
  }

  function linkTo({ last, epochs }: LogRange, query: ListQuery): string {
    const { after: _, ...rest } = query
    const next = { after: cursors.encode(last, epochs), ...rest } as unknown as Record<string, string>
    return `<${path}plants?${new URLSearchParams(next)}>; rel="next"`
  }
}

function isSame(one: ListQuery, other: ListQuery): boolean {
  return others.every((name) => one[name] === other[name])
}

/** Makes strong entity tags from the names of ranges, another for each coding (RFC 9110, section 8.8.3.3). */
function makeEtags(storeId: string): (range: LogRange, coding: Coding) => string {
  const store = createHash('sha256').update(storeId).digest('base64url').slice(0, 8)
  return ({ name }, coding) =>
    coding === 'identity' ? `"${store}.${name}"` : `"${store}.${name}.${codecNames[coding]}"`
}

export type Cursors = ReturnType<typeof makeCursors>

/** 66 bits, too many to guess. */
const markLength = 11

/**
 * Makes the cursors of a store; `storeId` is the key of their hash. The hash covers the epoch that owns the position,
 * so that a cursor becomes invalid with the plants before it.
 */
export function makeCursors(storeId: string) {
  /** A hash takes a third of an HMAC's time; truncation, and the key at its end, prevent length extension. */
  function encode(position: number, epochs: Epochs): string {
    const mark = hash('sha256', `${storeId}:${position}:${epochs.owner(position)}:${storeId}`, 'base64url')
    return `${position.toString(36)}-${mark.slice(0, markLength)}`
  }

  /** Returns the position; undefined for a cursor that this store did not issue, or whose plants were cut off the log. */
  function decode(cursor: string, epochs: Epochs): number | undefined {
    const position = Number.parseInt(cursor, 36)
    return Number.isSafeInteger(position) && encode(position, epochs) === cursor ? position : undefined
  }

  return { encode, decode }
}
