// A third engine, without SQL: a file with a line per change. Writers in two processes must take turns.
import { randomBytes } from 'node:crypto'
import { appendFileSync, readFileSync, statSync } from 'node:fs'
import type { Engine, Head, NoteChange, Outcome, Store, StoredPlant, Token } from '../../src/store/engine.ts'
import { engines } from '../../src/store/engines.ts'
import { StoreRefused, StoreUnavailable } from '../../src/store/errors.ts'
import { checksumOf } from '../../src/store/sql/sql.ts'

type Line = { id?: string; plants?: StoredPlant[]; tokens?: Token[]; notes?: NoteChange[] | undefined }

const pathOf = (url: string) => url.slice('ndjson:'.length)

/** Replays all lines into the current state. */
function load(path: string) {
  const plants: StoredPlant[] = []
  const [tokens, notes, ids] = [new Map<string, Token>(), new Map<string, string>(), [] as string[]]
  try {
    for (const text of readFileSync(path, 'utf8').split('\n').filter(Boolean)) {
      const line: Line = JSON.parse(text)
      if (line.id) ids.push(line.id)
      plants.push(...(line.plants ?? []))
      for (const token of line.tokens ?? []) tokens.set(token.id, token)
      for (const { key, value } of line.notes ?? []) notes.set(key, value)
    }
  } catch (cause) {
    throw new StoreUnavailable('unread', (cause as Error).message, { cause })
  }
  const items = new Map(plants.flatMap(({ id, item }) => (id === null ? [] : [[id, item]])))
  return { id: String(ids.at(-1)), plants, items, tokens, notes }
}

/** Appends a line on stable storage. */
function write(path: string, line: Line): true {
  appendFileSync(path, `${JSON.stringify(line)}\n`, { flush: true })
  return true
}

function makeLog(path: string): Store['log'] {
  const head = (): Head => {
    const { plants } = load(path)
    const markOf = (position: number) => (position === 0 ? '' : plants[position - 1]?.mark)
    return { position: plants.length, mark: markOf(plants.length) ?? '', markOf }
  }
  return {
    async append(entries, { notes = [] } = {}) {
      for (const note of notes)
        if ((load(path).notes.get(note.key) ?? '') !== note.before)
          throw new StoreUnavailable('nothing-added', `the note ${note.key} has changed`)
      if (entries.some(({ id = 0 }) => !Number.isSafeInteger(id)))
        throw new StoreUnavailable('nothing-added', 'an id is no integer')
      const { items: known, plants } = load(path)
      const mark = randomBytes(8).toString('base64url')
      const added: StoredPlant[] = []
      const outcomes = entries.map(({ id, item }): Outcome => {
        const held = id === undefined ? undefined : known.get(id)
        if (held !== undefined) return held === item ? 'replayed' : 'conflict'
        if (id !== undefined) known.set(id, item)
        const plant = { position: plants.length + added.length + 1, id: id ?? null, item, mark }
        added.push({ ...plant, checksum: checksumOf(plant) })
        return 'added'
      })
      write(path, { plants: added, notes })
      return outcomes
    },
    head,
    read(after, last, mark) {
      if (head().markOf(last) !== mark)
        throw new StoreUnavailable('unread', `there is no plant ${last} with the mark ${mark}`)
      const items = load(path)
        .plants.slice(after, last)
        .map(({ item }) => item)
      return Buffer.from(`[${items}]`)
    },
  }
}

function makeTokens(path: string): Store['tokens'] {
  const select = (holds: (token: Token) => boolean) => [...load(path).tokens.values()].filter(holds)
  const isValid = (at: number) => (token: Token) =>
    token.revokedAt === null && (token.expiresAt ?? Number.POSITIVE_INFINITY) > at
  const change = (
    id: string,
    holds: (token: Token) => boolean,
    values: Partial<Token>,
    ...added: Token[]
  ) => {
    const token = load(path).tokens.get(id)
    return token !== undefined && holds(token) && write(path, { tokens: [{ ...token, ...values }, ...added] })
  }
  return {
    find: async (id) => load(path).tokens.get(id),
    all: async () => select(() => true),
    async add(token) {
      const valid = select(isValid(token.createdAt)).find(({ name }) => name === token.name)
      return valid === undefined && !load(path).tokens.has(token.id) && write(path, { tokens: [token] })
    },
    async replace({ id, expiresAt }, token, at) {
      const former = load(path).tokens.get(id)
      const newer = select(isValid(at)).filter(({ createdAt }) => createdAt > Number(former?.createdAt))
      const isReplaced = former?.expiresAt !== null && newer.some(({ name }) => name === token.name)
      return !isReplaced && change(id, isValid(at), { expiresAt }, token)
    },
    revoke: async (id, at) => change(id, (token) => token.revokedAt === null, { revokedAt: at }),
    touch: async (id, at, since) =>
      void change(id, ({ lastUsedAt }) => (lastUsedAt ?? 0) <= since, { lastUsedAt: at }),
    async put(token) {
      const held = load(path).tokens.get(token.id)
      const ends = [held?.expiresAt, token.expiresAt].filter((at) => typeof at === 'number')
      const revokedAt = held?.revokedAt ?? token.revokedAt
      write(path, {
        tokens: [{ ...token, revokedAt, expiresAt: ends.length > 0 ? Math.min(...ends) : null }],
      })
    },
  }
}

const openFile: Engine['open'] = async (url, { mode, create, onCreate }) => {
  const path = pathOf(url)
  const isNew = statSync(path, { throwIfNoEntry: false }) === undefined
  if (isNew && !create) throw new StoreRefused(`no database file at ${path}`, { isMissing: true })
  if (isNew && mode === 'read') throw new StoreRefused('a database is not made by reading')
  if (isNew) write(path, { id: randomBytes(16).toString('base64url') })
  if (isNew) onCreate?.()
  return {
    id: load(path).id,
    log: makeLog(path),
    tokens: makeTokens(path),
    notes: async () => load(path).notes,
    plants: async (after, last, most) => load(path).plants.slice(after, Math.min(last, after + most)),
    find: async (ids) => new Map([...load(path).items].filter(([id]) => ids.includes(id))),
    async status() {
      const { size: bytes } = statSync(path)
      return { engineVersion: '1', bytes, cluster: null }
    },
    checks: {},
    async adopt(id) {
      const { id: held, plants, tokens } = load(path)
      return (held === id || plants.length + tokens.size === 0) && write(path, { id })
    },
    async put(plants) {
      if (plants[0]?.position !== load(path).plants.length + 1)
        throw new StoreUnavailable('nothing-added', 'the log ends elsewhere')
      write(path, { plants })
    },
    close: async () => {},
  }
}

engines.push({ name: 'NDJSON', prefix: 'ndjson:', scheme: /^ndjson:./, open: openFile })
