// A third engine, which only reads: a file of NDJSON, one plant a line. Loaded with --import, it adds its row to the table.
import { readFileSync, statSync } from 'node:fs'
import { DatabaseSync } from 'node:sqlite'
import { engines } from '../../src/store/engines.ts'
import { Epochs } from '../../src/store/epochs.ts'
import { checksumOf } from '../../src/store/format/checksum.ts'
import { migrations } from '../../src/store/format/migrations.ts'
import { sqliteDialect } from '../../src/store/sqlite/sqlite-dialect.ts'
import { makeView } from '../../src/store/sqlite/sqlite-view.ts'
import { type Store, StoreRefused, StoreUnavailable } from '../../src/store/store.ts'
import type { StoreView } from '../../src/store/view.ts'

const epoch = { epoch: 'file', start: 0 }
const pathOf = (url: string) => url.slice('ndjson:'.length)

/** The JSON text of each plant, as it stands in the file. */
function readItems(url: string): string[] {
  try {
    return readFileSync(pathOf(url), 'utf8').split('\n').filter(Boolean)
  } catch (error) {
    throw new StoreRefused((error as Error).message)
  }
}

/** The plants in memory, with the tables that every store has, so that SQL can be asked. */
function load(url: string): DatabaseSync {
  const db = new DatabaseSync(':memory:')
  for (const { sqlite } of migrations) db.exec(sqlite)
  db.exec(`PRAGMA user_version = ${migrations.length}`)
  db.exec(`INSERT OR REPLACE INTO meta (key, value) VALUES ('store', 'of-a-file-of-22-letter')`)
  const insert = db.prepare('INSERT INTO plants (position, item, checksum) VALUES (?, ?, ?)')
  for (const [index, item] of readItems(url).entries())
    insert.run(index + 1, item, checksumOf(index + 1, null, item))
  return db
}

function openView(url: string): StoreView {
  return {
    ...makeView({ db: load(url) }),
    async readStatus() {
      const { size: bytes } = statSync(pathOf(url))
      return { engineVersion: '1', bytes, service: { running: null, by: [] }, cluster: null }
    },
  }
}

async function open(url: string): Promise<Store> {
  const items = readItems(url)
  const view = openView(url)
  const refuse = async () => {
    throw new StoreUnavailable('nothing-added', 'a file of NDJSON is only read')
  }
  return {
    id: 'of-a-file-of-22-letter',
    log: {
      append: refuse,
      head: () => ({ position: items.length, epochs: new Epochs([epoch]) }),
      read: (after, last) => Buffer.from(`[${items.slice(after, last)}]`),
    },
    sql: {
      select: async () => [],
      execute: refuse,
    },
    ready: refuse,
    close: () => view.close(),
  }
}

engines.push({
  name: 'NDJSON',
  prefix: 'ndjson:',
  scheme: /^ndjson:./,
  dialect: sqliteDialect,
  findFault: () => undefined,
  open,
  view: async (url) => openView(url),
})
