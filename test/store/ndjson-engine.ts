// A third engine, without SQL: a file of NDJSON, one plant a line, as `import` takes it, and one of its tokens beside it. It is
// for one process, and one thread. Loaded with --import, it adds its row to the table.
import { appendFileSync, existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { engines } from '../../src/store/engines.ts'
import { Epochs } from '../../src/store/epochs.ts'
import { checksumOf } from '../../src/store/format/checksum.ts'
import { migrations } from '../../src/store/format/migrations.ts'
import { sqliteDialect } from '../../src/store/sqlite/sqlite-dialect.ts'
import { makeView } from '../../src/store/sqlite/sqlite-view.ts'
import {
  type Entry,
  type Outcome,
  type PlantLog,
  type Store,
  type StoredToken,
  StoreRefused,
  StoreUnavailable,
  type TokenNotes,
} from '../../src/store/store.ts'
import type { StoreView } from '../../src/store/view.ts'

const storeId = 'of-a-file-of-22-letter'
const pathOf = (url: string) => url.slice('ndjson:'.length)

function readEntries(path: string): Entry[] {
  try {
    const lines = readFileSync(path, 'utf8').split('\n').filter(Boolean)
    return lines.map((line) => {
      const { id, ...plant } = JSON.parse(line)
      return { id, item: JSON.stringify(plant) }
    })
  } catch (error) {
    throw new StoreRefused((error as Error).message)
  }
}

function readTokens(path: string): StoredToken[] {
  const file = `${path}.tokens`
  return existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : []
}

function makeLog(path: string): PlantLog {
  const log = readEntries(path)
  const known = new Map(log.flatMap(({ id, item }) => (id === undefined ? [] : [[id, item]])))
  const epochs = new Epochs([{ epoch: 'file', start: 0 }])
  return {
    async append(entries) {
      const added: Entry[] = []
      const outcomes = entries.map(({ id, item }): Outcome => {
        const stored = id === undefined ? undefined : known.get(id)
        if (stored !== undefined) return stored === item ? 'replayed' : 'conflict'
        added.push({ id, item })
        if (id !== undefined) known.set(id, item)
        return 'added'
      })
      const lines = added.map(({ id, item }) => `${JSON.stringify({ id, ...JSON.parse(item) })}\n`)
      appendFileSync(path, lines.join(''), { flush: true })
      log.push(...added)
      return outcomes
    },
    head: () => ({ position: log.length, epochs }),
    read: (after, last) => Buffer.from(`[${log.slice(after, last).map(({ item }) => item)}]`),
  }
}

function makeTokens(path: string): TokenNotes {
  const all = () => readTokens(path)
  const keep = (tokens: StoredToken[]) =>
    writeFileSync(`${path}.tokens`, JSON.stringify(tokens), { flush: true, mode: 0o600 })
  const isValid = ({ revokedAt, expiresAt }: StoredToken, now: number) =>
    revokedAt === null && (expiresAt ?? Number.POSITIVE_INFINITY) > now
  /** Changes the token with an id for which a condition holds; false when there is none. */
  const change = (id: string, holds: (token: StoredToken) => boolean, values: Partial<StoredToken>) => {
    const tokens = all()
    const found = tokens.find((token) => token.id === id && holds(token))
    if (found) keep(tokens.with(tokens.indexOf(found), { ...found, ...values }))
    return found !== undefined
  }
  return {
    hasAny: async () => all().length > 0,
    async add(token) {
      const tokens = all()
      const isTaken = (one: StoredToken) =>
        one.id === token.id || (one.name === token.name && isValid(one, token.createdAt))
      if (tokens.some(isTaken)) return false
      keep([...tokens, { ...token, lastUsedAt: null, revokedAt: null }])
      return true
    },
    async exchange(formerId, endsAt, newer, now) {
      const former = all().find((token) => token.id === formerId && isValid(token, now))
      const isNewer = (token: StoredToken) =>
        token.name === newer.name && token.createdAt > Number(former?.createdAt) && isValid(token, now)
      if (!former || (former.expiresAt !== null && all().some(isNewer))) return false
      const ended = all().map((token) => (token.id === formerId ? { ...token, expiresAt: endsAt } : token))
      keep([...ended, { ...newer, lastUsedAt: null, revokedAt: null }])
      return true
    },
    find: async (ids) => all().filter(({ id }) => ids.includes(id)),
    findNamed: async (text, now) =>
      all().filter((token) => token.id === text || (token.name === text && isValid(token, now))),
    findLatest: async (wanted, since) =>
      all().findLast(({ name, createdAt }) => name === wanted && createdAt >= since) as StoredToken,
    countValid: async (now) => all().filter((token) => isValid(token, now)).length,
    revoke: async (id, revokedAt) => change(id, (token) => token.revokedAt === null, { revokedAt }),
    touch: async (id, lastUsedAt, before) =>
      void change(id, (token) => (token.lastUsedAt ?? 0) <= before, { lastUsedAt }),
  }
}

/** Plants and tokens in the tables that every view has. */
function openView(path: string): StoreView {
  const db = new DatabaseSync(':memory:')
  for (const { sqlite } of migrations) db.exec(sqlite)
  db.exec(`PRAGMA user_version = ${migrations.length}`)
  db.exec(`INSERT OR REPLACE INTO meta (key, value) VALUES ('store', '${storeId}')`)
  const insert = db.prepare('INSERT INTO plants (position, id, item, checksum) VALUES (?, ?, ?, ?)')
  for (const [index, { id = null, item }] of readEntries(path).entries())
    insert.run(index + 1, id, item, checksumOf(index + 1, id, item))
  const { size: bytes } = statSync(path)
  const service = { running: null, by: [] }
  return {
    ...makeView({ db }),
    readStatus: async () => ({ engineVersion: '1', bytes, service, cluster: null }),
  }
}

async function open(path: string): Promise<Store> {
  const refuse = async () => {
    throw new StoreUnavailable('nothing-added', 'a file of NDJSON knows no SQL')
  }
  return {
    id: storeId,
    log: makeLog(path),
    tokens: makeTokens(path),
    sql: { select: refuse, execute: refuse },
    ready: async () => {},
    close: async () => {},
  }
}

engines.push({
  name: 'NDJSON',
  prefix: 'ndjson:',
  scheme: /^ndjson:./,
  dialect: sqliteDialect,
  findFault: () => undefined,
  open: (url) => open(pathOf(url)),
  view: async (url) => openView(pathOf(url)),
})
