// A third engine, without SQL, on one page: a file of lines, each with what one change added. Loaded with --import, it adds
// its row to the table. Commands may read and change the file beside a service, but not in the same moment.
import { randomBytes } from 'node:crypto'
import { appendFileSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import type {
  Entry,
  NoteChange,
  Outcome,
  Store,
  StoreOptions,
  StoreView,
  Token,
} from '../../src/store/engine.ts'
import { engines } from '../../src/store/engines.ts'
import { type Epoch, Epochs } from '../../src/store/epochs.ts'
import { StoreMissing, StoreRefused, StoreUnavailable } from '../../src/store/errors.ts'
import { sameItem } from '../../src/store/format/same-item.ts'

type Line = {
  id?: string
  plants?: Entry[]
  tokens?: Token[]
  epochs?: Epoch[]
  note?: NoteChange | undefined
}

/** All that the lines come to. */
class Contents {
  readonly path: string
  #bytes = 0
  id = ''
  epochs: Epoch[] = [{ epoch: 'first', start: 0 }]
  readonly plants: Entry[] = []
  readonly items = new Map<number, string>()
  readonly tokens = new Map<string, Token>()
  readonly notes = new Map<string, string>()

  constructor(path: string) {
    this.path = path
    if (this.now.id === '') throw new StoreRefused(`${path} is not a plant store`)
  }

  /** With what others have written. */
  get now(): this {
    try {
      if (statSync(this.path).size === this.#bytes) return this
      const bytes = readFileSync(this.path)
      for (const line of String(bytes.subarray(this.#bytes)).split('\n').filter(Boolean))
        this.#take(JSON.parse(line))
      this.#bytes = bytes.length
      return this
    } catch (cause) {
      throw new StoreUnavailable('unread', (cause as Error).message, { cause })
    }
  }

  #take({ id, plants = [], tokens = [], epochs, note }: Line): void {
    this.id = id ?? this.id
    this.epochs = epochs ?? this.epochs
    this.plants.push(...plants)
    for (const { id, item } of plants) if (id !== undefined) this.items.set(id, item)
    for (const token of tokens) this.tokens.set(token.id, token)
    if (note?.value) this.notes.set(note.key, note.value)
    else if (note) this.notes.delete(note.key)
  }

  /** Writes a line to stable storage. */
  write(line: Line): true {
    appendFileSync(this.path, `${JSON.stringify(line)}\n`, { flush: true })
    return this.now && true
  }
}

const pathOf = (url: string) => url.slice('ndjson:'.length)
const exists = (path: string) => statSync(path, { throwIfNoEntry: false }) !== undefined
const isValid = ({ revokedAt, expiresAt }: Token, at: number) =>
  revokedAt === null && (expiresAt ?? Number.POSITIVE_INFINITY) > at
const sorted = (tokens: Iterable<Token>) =>
  [...tokens].sort((a, b) => a.createdAt - b.createdAt || (a.id < b.id ? -1 : 1))

/** What a store and a view have alike. */
function reading(contents: Contents) {
  return {
    plants: (async ({ after, last }, most) =>
      contents.now.plants.slice(after, Math.min(last, after + most)).map(({ id = null, item }, index) => {
        return { position: after + 1 + index, id, item, checksum: null }
      })) satisfies StoreView['plants'],
    tokens: async () => sorted(contents.now.tokens.values()),
    find: (async (ids) =>
      new Map([...contents.now.items].filter(([id]) => ids.includes(id)))) satisfies Store['find'],
    notes: (async (prefix) =>
      new Map(
        [...contents.now.notes].filter(([key]) => key.startsWith(prefix)),
      )) satisfies StoreView['notes'],
  }
}

async function open(url: string, { mustExist, made }: StoreOptions): Promise<Store> {
  const path = pathOf(url)
  if (!exists(path)) {
    if (mustExist) throw new StoreMissing(`there is no file ${path}`)
    writeFileSync(path, `${JSON.stringify({ id: randomBytes(16).toString('base64url') })}\n`, { flush: true })
    made?.()
  }
  const contents = new Contents(path)
  const { plants, tokens, find, notes } = reading(contents)
  const change = (id: string, holds: (token: Token) => boolean, values: Partial<Token>) => {
    const token = contents.now.tokens.get(id)
    return token !== undefined && holds(token) && contents.write({ tokens: [{ ...token, ...values }] })
  }
  const isNamed = (name: string, at: number) => (one: Token) => one.name === name && isValid(one, at)
  return {
    id: contents.id,
    log: {
      async append(entries, _deadlineMs, note) {
        if (note && contents.now.notes.get(note.key) !== note.before)
          throw new StoreUnavailable('nothing-added', `the note ${note.key} has changed`)
        const known = new Map(contents.now.items)
        const outcomes = entries.map(({ id, item }): Outcome => {
          const held = id === undefined ? undefined : known.get(id)
          if (held !== undefined) return sameItem(held, item) ? 'replayed' : 'conflict'
          if (id !== undefined) known.set(id, item)
          return 'added'
        })
        contents.write({ plants: entries.filter((_, index) => outcomes[index] === 'added'), note })
        return outcomes
      },
      head: () => ({ position: contents.now.plants.length, epochs: new Epochs(contents.epochs) }),
      read(after, last) {
        const items = contents.now.plants.slice(after, last).map(({ item }) => item)
        return Buffer.from(`[${items}]`)
      },
    },
    tokens: {
      find: async (ids) => (await tokens()).filter(({ id }) => ids.includes(id)),
      named: async (name) => (await tokens()).filter((token) => token.name === name),
      async count(at) {
        const all = await tokens()
        return { all: all.length, valid: all.filter((token) => isValid(token, at)).length }
      },
      async add(token) {
        const { tokens: held } = contents.now
        const isTaken = [...held.values()].some(isNamed(token.name, token.createdAt))
        return !isTaken && !held.has(token.id) && contents.write({ tokens: [token] })
      },
      async replace({ id, expiresAt }, token, at) {
        const former = contents.now.tokens.get(id)
        if (!former || !isValid(former, at)) return false
        const named = [...contents.tokens.values()].filter(isNamed(token.name, at))
        const isReplaced = named.some(({ createdAt }) => createdAt > former.createdAt)
        if (former.expiresAt !== null && isReplaced) return false
        return contents.write({ tokens: [{ ...former, expiresAt }, token] })
      },
      revoke: async (id, revokedAt) => change(id, (token) => token.revokedAt === null, { revokedAt }),
      touch: async (id, at, since) =>
        void change(id, ({ lastUsedAt }) => (lastUsedAt ?? 0) <= since, { lastUsedAt: at }),
    },
    notes: {
      read: notes,
      change: async (note) =>
        (contents.now.notes.get(note.key) ?? '') === note.before && contents.write({ note }),
    },
    find,
    ready: async () => void contents.now,
    close: async () => {},
  }
}

async function view(url: string): Promise<StoreView> {
  const path = pathOf(url)
  if (!exists(path)) throw new StoreMissing(`there is no file ${path}`)
  const contents = new Contents(path)
  return {
    ...reading(contents),
    version: 2,
    probe: async () => void contents.now,
    id: async () => contents.id,
    head: async () => contents.now.plants.length,
    epochs: async () => contents.epochs,
    async join({ after, last }, separator, withId = false) {
      const items = contents.now.plants
        .slice(after, last)
        .map(({ id, item }) => (withId ? JSON.stringify({ ...JSON.parse(item), id }) : item))
      return { count: items.length, text: Buffer.from(items.join(separator)) }
    },
    readStatus: async () => {
      const { size: bytes } = statSync(path)
      return { engineVersion: '1', bytes, service: { running: null, by: [] }, cluster: null }
    },
    close: async () => {},
  }
}

engines.push({ name: 'NDJSON', prefix: 'ndjson:', scheme: /^ndjson:./, open, view })
