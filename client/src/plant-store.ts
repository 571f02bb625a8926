// The client: adds plants, each exactly once, and lists them.
import { type Answer, type Reading, readAnswer, readNext } from './answer.ts'
import type { components, operations } from './contract.ts'
import { PlantStoreError, PlantStoreUnreachable } from './errors.ts'
import { type RetryOptions, retry, type Send } from './retry.ts'

/** A plant to add: `name`, `tag` and, optionally, your own `id`. */
export type NewPlant = components['schemas']['NewPlant']
/** A plant of the store: `name` and `tag`. */
export type Plant = components['schemas']['Plant']
type ListQuery = NonNullable<operations['listPlants']['parameters']['query']>

/** Options of a `PlantStore`. */
export type PlantStoreOptions = {
  /** The URL of the API, for instance `https://plants.example.org/store/v1`. */
  baseUrl: string | undefined
  /** An access token of the service. It is sent with each request, and never appears in the message of an error. */
  token: string | undefined
  /** Sends the requests; the global `fetch` by default. */
  fetch?: ((url: string, init: RequestInit) => Promise<Response>) | undefined
  /** How requests are retried. */
  retry?: RetryOptions | undefined
}

/** Options of every call. */
export type CallOptions = {
  /** Ends the call when it is aborted; the call rejects with the signal's reason. */
  signal?: AbortSignal | undefined
  /** Retry options of this call; they override those of the client. */
  retry?: RetryOptions | undefined
}

/** Options of `all`. */
export type AllOptions = CallOptions & {
  /** The number of plants per request; 1000 by default. */
  pageSize?: number | undefined
  /** Where to continue: `after` of an earlier `all`. */
  after?: string | undefined
}

/** The page that `all` reads: its cursor, number of plants and ETag, and how many of its plants have been read. */
type Place = { cursor: string | undefined; length: number; etag: string | undefined; seen: number }

/** Options of `list`. */
export type ListOptions = CallOptions & {
  /** The maximum number of plants; without it, the whole list in one response. */
  limit?: number | undefined
  /** Where the page starts: `next` of the previous page. */
  after?: string | undefined
  /**
   * The `etag` of a list that you have already. If the list has not changed, the result is `notModified`, without
   * plants.
   */
  ifNoneMatch?: string | undefined
}

/** Some plants, in the order in which they were added. */
export type PlantPage = {
  /** The plants of this page. */
  plants: Plant[]
  /** Where the next page starts: pass it as `after`. Absent on the last page. */
  next?: string
  /**
   * Identifies this list: if the ETag is unchanged, so is the list. In a browser it is missing unless the service
   * exposes it.
   */
  etag?: string
  /** True if the list still has the ETag in `ifNoneMatch`. */
  notModified?: true
}

/** The plants of a list, one by one. */
export type Plants = AsyncGenerator<Plant, void, undefined> & {
  /** The position after the last plant that was read. Pass it to `all` later to get only newer plants. */
  readonly after: string
}

/** A client of one Plant Store. */
export class PlantStore {
  readonly #url: string
  readonly #token: string
  readonly #fetch: NonNullable<PlantStoreOptions['fetch']>
  readonly #retry: RetryOptions | undefined

  /** Sends no request. Throws a TypeError if `baseUrl` or `token` is invalid. */
  constructor({
    baseUrl,
    token,
    fetch = (url, init) => globalThis.fetch(url, init),
    retry,
  }: PlantStoreOptions) {
    // fetch would repeat an invalid header, and so the token, in its error message.
    if (!/^[!-~]+$/.test(token ?? '')) throw new TypeError('token must be visible ASCII characters')
    // The message does not repeat `baseUrl`, which may contain a password by mistake.
    if (typeof baseUrl !== 'string' || !/^(https?:\/)?\/[^?#@]*$/i.test(baseUrl))
      throw new TypeError(
        'baseUrl must be the http or https URL of the API, without a password, query or fragment',
      )
    this.#url = new Request(`${baseUrl.replace(/\/+$/, '')}/plants`).url
    this.#token = token as string
    // Called as a plain function, because the fetch of browsers must not be called as a method of another object.
    this.#fetch = (url, init) => fetch(url, init)
    this.#retry = retry
  }

  /**
   * Adds a plant, exactly once, and resolves when it is on stable storage. A plant without an `id` gets a random one of
   * 53 bits, so that an attempt whose outcome is unknown can be repeated. Throws PlantStoreError or
   * PlantStoreUnreachable; their `mayBeAdded` is true if the plant may have been added anyway. It may also have been
   * added after an abort.
   */
  async add(plant: NewPlant, options: CallOptions = {}): Promise<Plant> {
    try {
      return await this.#add({ ...plant, id: plant.id ?? makeId() }, options)
    } catch (error) {
      const isConflict = error instanceof PlantStoreError && error.kind === 'id-conflict'
      if (!isConflict || plant.id !== undefined) throw error
      // The random id belongs to another plant, so this one was not added.
      return this.#add({ ...plant, id: makeId() }, options)
    }
  }

  /** Lists plants: a page, or all. Throws PlantStoreError or PlantStoreUnreachable. */
  async list({ limit, after, ifNoneMatch, signal, retry: own }: ListOptions = {}): Promise<PlantPage> {
    const url = this.#url + toQuery({ limit, after })
    const { data, headers } = await retry(
      (signal, onData) => {
        const headers = ifNoneMatch ? { 'if-none-match': ifNoneMatch } : {}
        const isKept = ifNoneMatch !== undefined
        return this.#send<Plant[]>(url, { signal, headers }, { isWanted: isList, onData, isKept })
      },
      url,
      { ...this.#retry, ...own },
      signal,
    )
    const next = readNext(headers)
    const etag = headers.get('etag')
    const rest = { ...(next && { next }), ...(etag && { etag }) }
    return data ? { plants: data, ...rest } : { plants: [], notModified: true, ...rest }
  }

  /**
   * All plants, a page at a time: `for await (const plant of store.all())`. `pageSize`: plants in one request, 1000 by
   * default. Plants that are added meanwhile come last. `after`: `after` of an earlier call, to read only the plants
   * added since. Throws as `list` does, and an Error if plants that were received before are no longer in the store.
   */
  all({ pageSize = 1000, after = '0.0..', ...options }: AllOptions = {}): Plants {
    const [, seen, length, cursor, etag] = /^(\d+)\.(\d+)\.([^.]*)\.(.*)$/.exec(after) ?? []
    const place: Place = { cursor: cursor || undefined, length: Number(length), etag, seen: Number(seen) }
    const plants = this.#turnPages(place, pageSize, options)
    return Object.defineProperty(plants, 'after', {
      get: () => [place.seen, place.length, place.cursor, place.etag].join('.'),
    }) as Plants
  }

  async *#turnPages(
    place: Place,
    pageSize: number,
    options: CallOptions,
  ): AsyncGenerator<Plant, void, undefined> {
    if (!(pageSize > 0)) throw new RangeError('pageSize must be at least 1')
    if (!(place.seen >= 0)) throw new TypeError('after must be the `after` of an earlier call of all()')
    // The cursor identifies the plants before the page; the ETag identifies those of the page.
    if (place.seen > 0 && place.etag) {
      const { cursor, length, etag, seen } = place
      const kept = { limit: length, after: cursor, ifNoneMatch: etag }
      const page = await this.list({ ...options, ...kept })
      // A proxy may omit If-None-Match from the request, or Link from the response.
      if (!page.notModified && page.etag !== etag)
        throw new Error('Plants that were received are no longer in the store: start without `after`')
      if (seen === length && page.next) Object.assign(place, { cursor: page.next, seen: 0 })
    }
    for (;;) {
      const after = place.cursor
      const limit = Math.max(pageSize, place.seen + 1)
      const ifNoneMatch = (place.seen === place.length && place.etag) || undefined
      const page = await this.list({ ...options, limit, after, ifNoneMatch })
      if (page.notModified) return
      const { plants, next, etag } = page
      // For example from a cache that ignores the query. Without this check the loop would never end.
      if (after && next === after)
        throw new PlantStoreUnreachable(new Error("The page's Link header points to the same page"), {
          url: this.#url,
        })
      Object.assign(place, { length: plants.length, etag })
      for (const plant of plants.slice(place.seen)) {
        place.seen++
        yield plant
      }
      if (!next) return
      Object.assign(place, { cursor: next, seen: 0 })
    }
  }

  async #add(plant: NewPlant, { signal, retry: own }: CallOptions): Promise<Plant> {
    const body = JSON.stringify(plant)
    const isWanted = (added: unknown): added is Plant => isSame(added as Plant | null, plant)
    const send: Send<Plant> = (signal) =>
      this.#send(this.#url, { method: 'POST', body, signal }, { isWanted, onData() {} })
    return (await retry(send, this.#url, { ...this.#retry, ...own }, signal)).data as Plant
  }

  async #send<T>(url: string, init: RequestInit, reading: Reading<T>): Promise<Answer<T>> {
    const response = await this.#fetch(url, {
      ...init,
      headers: {
        ...init.headers,
        authorization: `Bearer ${this.#token}`,
        ...(init.body && { 'content-type': 'application/json' }),
      },
      // fetch turns a redirected POST into a GET, whose response could be mistaken for that of an addition.
      redirect: 'manual',
    })
    return readAnswer(response, reading)
  }
}

/** A list from another service may have other items. */
const isList = (body: unknown): body is Plant[] =>
  Array.isArray(body) && body.every((item) => typeof item?.name === 'string')

/** The response must have every member that was sent, except the id. */
function isSame(added: Plant | null, plant: NewPlant): boolean {
  const isBack = ([field, value]: [string, unknown]) =>
    field === 'id' || added?.[field as keyof Plant] === value
  return Object.entries(plant).every(isBack)
}

function toQuery(query: { [Name in keyof ListQuery]: ListQuery[Name] | undefined }): string {
  const given = Object.entries(query).filter(([, value]) => value !== undefined)
  return given.length > 0
    ? `?${new URLSearchParams(Object.fromEntries(given) as Record<string, string>)}`
    : ''
}

/** A random `id` for a plant: 53 bits, so that a collision is very unlikely. */
export function makeId(): number {
  const [high = 0, low = 0] = crypto.getRandomValues(new Uint32Array(2))
  return (high >>> 11) * 2 ** 32 + low
}
