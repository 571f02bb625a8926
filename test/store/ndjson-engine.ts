// A third engine, without SQL: a file with a line per change. Writers in two processes must take turns.
import { randomBytes } from 'node:crypto'
import { appendFileSync, readFileSync, statSync } from 'node:fs'
import type { Entry, NoteChange, Outcome, Store, StoreView, Token } from '../../src/store/engine.ts'
import { engines } from '../../src/store/engines.ts'
import { Epochs } from '../../src/store/epochs.ts'
import { StoreMissing, StoreUnavailable } from '../../src/store/errors.ts'
import { sameItem } from '../../src/store/format/same-item.ts'

type Line = { id?: string; plants?: Entry[]; tokens?: Token[]; note?: NoteChange | undefined }

const epochs = [{ epoch: 'first', start: 0 }]
const pathOf = (url: string) => url.slice('ndjson:'.length)
const exists = (path: string) => statSync(path, { throwIfNoEntry: false }) !== undefined

/** Reads all that the lines come to. */
function load(path: string) {
  const plants: Entry[] = []
  const [tokens, notes, ids] = [new Map<string, Token>(), new Map<string, string>(), [] as string[]]
  try {
    for (const text of readFileSync(path, 'utf8').split('\n').filter(Boolean)) {
      const line: Line = JSON.parse(text)
      if (line.id) ids.push(line.id)
      plants.push(...(line.plants ?? []))
      for (const token of line.tokens ?? []) tokens.set(token.id, token)
      if (line.note) notes.set(line.note.key, line.note.value)
    }
  } catch (cause) {
    throw new StoreUnavailable('unread', (cause as Error).message, { cause })
  }
  for (const [key, value] of notes) if (value === '') notes.delete(key)
  const items = new Map(plants.flatMap(({ id, item }) => (id === undefined ? [] : [[id, item]])))
  return { id: String(ids[0]), plants, items, tokens, notes }
}

/** Writes a line to stable storage. */
function write(path: string, line: Line): true {
  appendFileSync(path, `${JSON.stringify(line)}\n`, { flush: true })
  return true
}

function makeView(path: string): StoreView {
  if (!exists(path)) throw new StoreMissing(`there is no file ${path}`)
  return {
    version: 2,
    probe: async () => void load(path),
    id: async () => load(path).id,
    head: async () => load(path).plants.length,
    epochs: async () => epochs,
    plants: async ({ after, last }, most) =>
      load(path)
        .plants.slice(after, Math.min(last, after + most))
        .map(({ id = null, item }, index) => ({ position: after + 1 + index, id, item, checksum: null })),
    async join({ after, last }, separator, withId = false) {
      const plants = load(path).plants.slice(after, last)
      const texts = plants.map(({ id, item }) =>
        withId ? JSON.stringify({ ...JSON.parse(item), id }) : item,
      )
      return { count: texts.length, text: Buffer.from(texts.join(separator)) }
    },
    find: async (ids) => new Map([...load(path).items].filter(([id]) => ids.includes(id))),
    tokens: async () => [...load(path).tokens.values()],
    notes: async (prefix) => new Map([...load(path).notes].filter(([key]) => key.startsWith(prefix))),
    async readStatus() {
      const { size: bytes } = statSync(path)
      return { engineVersion: '1', bytes, service: { running: null, by: [] }, cluster: null }
    },
    close: async () => {},
  }
}

function makeLog(path: string): Store['log'] {
  const head = () => ({ position: load(path).plants.length, epochs: new Epochs(epochs) })
  return {
    async append(entries, _deadlineMs, note) {
      if (note && load(path).notes.get(note.key) !== note.before)
        throw new StoreUnavailable('nothing-added', `the note ${note.key} has changed`)
      if (entries.some(({ id = 0 }) => !Number.isSafeInteger(id)))
        throw new StoreUnavailable('nothing-added', 'an id is no integer')
      const known = load(path).items
      const outcomes = entries.map(({ id, item }): Outcome => {
        const held = id === undefined ? undefined : known.get(id)
        if (held !== undefined) return sameItem(held, item) ? 'replayed' : 'conflict'
        if (id !== undefined) known.set(id, item)
        return 'added'
      })
      write(path, { plants: entries.filter((_, index) => outcomes[index] === 'added'), note })
      return outcomes
    },
    head,
    read(after, last, epoch) {
      const { position, epochs } = head()
      if (last > position || epochs.owner(last) !== epoch)
        throw new StoreUnavailable('unread', `there are no plants to ${last} of epoch ${epoch}`)
      const plants = load(path).plants.slice(after, last)
      return Buffer.from(`[${plants.map(({ item }) => item)}]`)
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
    find: async (ids) => select(({ id }) => ids.includes(id)),
    named: async (name) => select((token) => token.name === name),
    count: async (at) => ({ all: select(() => true).length, valid: select(isValid(at)).length }),
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
  }
}

engines.push({
  name: 'NDJSON',
  prefix: 'ndjson:',
  scheme: /^ndjson:./,
  view: async (url) => makeView(pathOf(url)),
  async open(url, { mustExist, made }) {
    const path = pathOf(url)
    const isNew = !mustExist && !exists(path)
    if (isNew) write(path, { id: randomBytes(16).toString('base64url') })
    if (isNew) made?.()
    const { id, find, notes: read, probe: ready, close } = makeView(path)
    const change = async (note: NoteChange) =>
      (load(path).notes.get(note.key) ?? '') === note.before && write(path, { note })
    const log = makeLog(path)
    return { id: await id(), log, tokens: makeTokens(path), notes: { read, change }, find, ready, close }
  },
})
