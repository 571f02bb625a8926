// The representations of a list: its headers and entity tag in each content coding (RFC 9110, section 8.8.3).
import { createHash } from 'node:crypto'
import { ListQuery } from '../../../schemas/plant.ts'
import type { Coding } from '../../http/codings.ts'
import type { Head } from '../../store/store.ts'
import { codecNames } from './coding/codec.ts'
import type { Cursors } from './cursor.ts'
import { type Page, pageOf } from './pages.ts'

/** A page in a content coding, with its headers: those of a 200, and of a 304. */
export type Form = {
  page: Page
  coding: Coding
  etag: string
  headers: Record<string, string>
  current: Record<string, string>
}

/** A list, with its forms, which are made on demand. */
export type Listed = { readonly page: Page; form: (coding: Coding) => Form }

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
    const page = pageOf(after, Math.min(after + limit, head.position), head.epochs)
    const link = page.last < head.position && limit > 0 ? linkTo(page, query) : undefined
    const forms: Partial<Record<Coding, Form>> = {}
    const form = (coding: Coding) => {
      forms[coding] ??= describe(page, coding, link)
      return forms[coding]
    }
    latest = { head, after, query, page, form }
    return latest
  }

  function describe(page: Page, coding: Coding, link: string | undefined): Form {
    const etag = etagOf(page, coding)
    const current: Form['current'] = { etag, 'cache-control': 'private, no-cache', vary: 'Accept-Encoding' }
    if (link !== undefined) current.link = link
    const headers: Form['headers'] = { ...current, 'content-type': 'application/json' }
    if (coding !== 'identity') headers['content-encoding'] = coding
    return { page, coding, etag, headers, current }
  }

  function linkTo({ last, epochs }: Page, query: ListQuery): string {
    const { after: _, ...rest } = query
    const next = { after: cursors.encode(last, epochs), ...rest } as unknown as Record<string, string>
    return `<${path}plants?${new URLSearchParams(next)}>; rel="next"`
  }
}

function isSame(one: ListQuery, other: ListQuery): boolean {
  return others.every((name) => one[name] === other[name])
}

/** Makes strong entity tags from the names of pages, another for each coding (RFC 9110, section 8.8.3.3). */
function makeEtags(storeId: string): (page: { name: string }, coding: Coding) => string {
  const store = createHash('sha256').update(storeId).digest('base64url').slice(0, 8)
  return ({ name }, coding) =>
    coding === 'identity' ? `"${store}.${name}"` : `"${store}.${name}.${codecNames[coding]}"`
}
