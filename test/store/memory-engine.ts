// A third engine, without SQL and without files: the log of the tests in memory, with notes and tokens.
import { randomBytes } from 'node:crypto'
import type { Engine, NoteChange, Positions, Store, StoredPlant, Token } from '../../src/store/engine.ts'
import { engines } from '../../src/store/engines.ts'
import { StoreRefused, StoreUnavailable } from '../../src/store/errors.ts'
import { checksumOf } from '../../src/store/sql/checksum.ts'
import { MemoryLog } from '../support/memory-log.ts'

/** What outlives a store, by its URL. */
class Database {
  readonly id = randomBytes(16).toString('base64url')
  readonly log = new MemoryLog()
  readonly notes = new Map<string, string>()
  readonly tokens = new Map<string, Token>()
}

const databases = new Map<string, Database>()

function change(notes: Database['notes'], { key, before, value }: NoteChange): boolean {
  if ((notes.get(key) ?? '') !== before) return false
  if (value === '') notes.delete(key)
  else notes.set(key, value)
  return true
}

function makeLog({ log, notes }: Database): Store['log'] {
  return {
    async append(entries, { note } = {}) {
      if (entries.some(({ id = 0 }) => !Number.isSafeInteger(id)))
        throw new StoreUnavailable('nothing-added', 'an id is no integer')
      if (note && !change(notes, note))
        throw new StoreUnavailable('nothing-added', `the note ${note.key} has changed`)
      return log.append(entries)
    },
    head: () => log.head(),
    read: (after, last, mark) => log.read(after, last, mark),
  }
}

function makeTokens(tokens: Database['tokens']): Store['tokens'] {
  const select = (holds: (token: Token) => boolean) => [...tokens.values()].filter(holds)
  const isValid = (at: number) => (token: Token) =>
    token.revokedAt === null && (token.expiresAt ?? Number.POSITIVE_INFINITY) > at
  const put = (token: Token) => Boolean(tokens.set(token.id, token))
  const update = (id: string, holds: (token: Token) => boolean, values: Partial<Token>) => {
    const token = tokens.get(id)
    return token !== undefined && holds(token) && put({ ...token, ...values })
  }
  return {
    find: async (id) => tokens.get(id),
    named: async (name) => select((token) => token.name === name),
    all: async () => select(() => true),
    count: async (at) => ({ all: tokens.size, valid: select(isValid(at)).length }),
    async add(token) {
      const isTaken = select(isValid(token.createdAt)).some(({ name }) => name === token.name)
      return !isTaken && !tokens.has(token.id) && put(token)
    },
    async replace({ id, expiresAt }, token, at) {
      const former = tokens.get(id)
      const newer = select(isValid(at)).filter(({ createdAt }) => createdAt > Number(former?.createdAt))
      const isReplaced = former?.expiresAt !== null && newer.some(({ name }) => name === token.name)
      return !isReplaced && update(id, isValid(at), { expiresAt }) && put(token)
    },
    revoke: async (id, at) => update(id, (token) => token.revokedAt === null, { revokedAt: at }),
    touch: async (id, at, since) =>
      void update(id, ({ lastUsedAt }) => (lastUsedAt ?? 0) <= since, { lastUsedAt: at }),
  }
}

function readPlants({ rows }: MemoryLog, { after, last }: Positions): StoredPlant[] {
  return rows.slice(after, last).map(({ entry: { id = null, item }, mark }, index) => {
    const plant = { position: after + index + 1, id, item, mark }
    return { ...plant, checksum: checksumOf(plant) }
  })
}

const open: Engine['open'] = async (url, { create, made }) => {
  const known = databases.get(url)
  if (!known && !create) throw new StoreRefused(`there is no file ${url}`, { isMissing: true })
  const database = known ?? new Database()
  databases.set(url, database)
  if (!known) made?.()
  const { id, log, notes, tokens } = database
  return {
    id,
    log: makeLog(database),
    tokens: makeTokens(tokens),
    notes: {
      read: async (prefix) => new Map([...notes].filter(([key]) => key.startsWith(prefix))),
      change: async (note) => change(notes, note),
    },
    plants: async (range, most) => readPlants(log, range).slice(0, most),
    async join(range, separator, withId = false) {
      const texts = readPlants(log, range).map(({ id, item }) =>
        withId && id !== null ? JSON.stringify({ ...JSON.parse(item), id }) : item,
      )
      return { count: texts.length, text: Buffer.from(texts.join(separator)) }
    },
    find: async (ids) =>
      new Map(log.entries.flatMap(({ id, item }) => (ids.includes(Number(id)) ? [[Number(id), item]] : []))),
    ready: async () => {},
    status: async () => ({
      engineVersion: '1',
      bytes: 0,
      service: { running: null, by: [] },
      cluster: null,
    }),
    checks: {},
    close: async () => {},
  }
}

engines.push({ name: 'memory', prefix: 'memory:', scheme: /^memory:./, open })
