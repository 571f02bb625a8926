// The tables of a log, on the engines with SQL.
import { readFileSync } from 'node:fs'
import tap from 'tap'
import { StoreRefused, StoreUnavailable } from '../../src/store/errors.ts'
import { writeInput } from '../cli/imports.ts'
import { runCommand } from '../support/commands.ts'
import { engines, sharedServer } from '../support/engines.ts'
import { preload } from '../support/processes.ts'
import { add, listNames, open, openStore } from '../support/stores.ts'

/** `newer`: SQL that makes a store of a newer version; `look`: reads everything that a refusal could change. */
const others: Record<string, { newer: string; look: (url: string) => Promise<unknown> }> = {
  SQLite: { newer: 'PRAGMA user_version = 99', look: async (url) => readFileSync(new URL(url)) },
  PostgreSQL: {
    newer: "UPDATE meta SET value = '99' WHERE key = 'step'",
    look: async (url) => {
      const database = new URL(url).pathname.slice(1)
      const server = await sharedServer()
      return [
        await server.query('SELECT * FROM meta ORDER BY key', database),
        await server.query('SELECT oid, relname FROM pg_class ORDER BY oid', database),
      ]
    },
  },
}

/** Adds a step to the schema in other processes. */
const later = preload(`
  import { registerHooks } from 'node:module'
  const step = "ALTER TABLE plants ADD COLUMN note TEXT"
  registerHooks({
    load(url, context, nextLoad) {
      const loaded = nextLoad(url, context)
      if (!url.endsWith('/sql/schema.ts')) return loaded
      const source = String(loaded.source).replace(/(?<=const steps = \\[.*)(?=\\]\\n)/, ', { sqlite: step, postgres: step }')
      return { ...loaded, source: 'const step = ' + JSON.stringify(step) + ';' + source }
    },
  })`).NODE_OPTIONS

for (const engine of engines) {
  tap.test(`tables on ${engine.name}`, async (t) => {
    t.test('refuse to change or remove a plant', async (t) => {
      const store = await open(t, await engine.createDatabase(t))
      await add(store, 'a', 'b')
      const columns = ['position', 'id', 'item', 'mark', 'checksum']
      const statements = columns.map((name) => `UPDATE plants SET ${name} = ${name} WHERE position = 1`)
      statements.push('DELETE FROM plants WHERE position = 2')
      if (engine.name === 'PostgreSQL') statements.push('TRUNCATE plants')
      const refused = { constructor: StoreUnavailable, message: /append-only/ }
      for (const statement of statements) await t.rejects(store.sql.execute(statement), refused, statement)
      t.strictSame(await listNames(store), ['a', 'b'])
    })

    t.test('list plants in log order beside an added index', async (t) => {
      const store = await open(t, await engine.createDatabase(t))
      await store.sql.execute('CREATE INDEX newest ON plants (position DESC, item)')
      await add(store, 'a', 'b', 'c')
      t.strictSame(await listNames(store), ['a', 'b', 'c'])
    })

    t.test('of a newer version are refused and left unchanged', async (t) => {
      const url = await engine.createDatabase(t)
      const store = await openStore(url)
      const other = others[engine.name] as (typeof others)[string]
      await store.sql.execute(other.newer)
      await store.close()
      const before = await other.look(url)
      const refused = { constructor: StoreRefused, message: /version 99.*upgrade plant-store/ }
      for (const mode of ['write', 'read'] as const) await t.rejects(openStore(url, { mode }), refused, mode)
      t.strictSame(await other.look(url), before)
    })

    t.test('get a later step when they are opened for writing, beside a process without it', async (t) => {
      const url = await engine.createDatabase(t)
      const earlier = await open(t, url)
      await add(earlier, 'a')
      process.env.TEST_NODE_OPTIONS = later
      t.teardown(() => delete process.env.TEST_NODE_OPTIONS)
      const run = (...args: string[]) => runCommand(args, { DATABASE_URL: url })
      t.match(await run('export', '--quiet'), { code: 0, stdout: '{"name":"a","tag":""}\n' })
      await (await openStore(url)).close()
      t.match(await run('import', writeInput(t, '{"name":"b","tag":""}')), { code: 0, stdout: /^1 added/ })
      t.strictSame(await add(earlier, 'c'), ['added'])
      t.match(await run('verify'), { code: 0, stdout: /3 plants, .*\nno faults/ })
      await t.rejects(openStore(url), { constructor: StoreRefused, message: /version 2.*upgrade/ })
    })
  })
}
