// What a start prints: the database, the first token of a new database, and how to create another token.
import { execFile } from 'node:child_process'
import fs, { existsSync, readdirSync, readFileSync, realpathSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { SettingError } from '../../src/setting-values.ts'
import type { Token, TokenTable } from '../../src/store/engine.ts'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { introduceTokens } from '../../src/tokens/first-token.ts'
import { readTokenId } from '../../src/tokens/format.ts'
import { runCommand } from '../support/commands.ts'
import { createDirectory, engines, sqlite } from '../support/engines.ts'
import { watchSyncs } from '../support/processes.ts'
import { startService } from '../support/service.ts'
import { open } from '../support/stores.ts'

/** Introduces the tokens of a table; the first one is written to `file`, if any. */
const introduce = (table: TokenTable, file?: string) =>
  introduceTokens(table, { file, plantsUrl: 'http://127.0.0.1:3000/plants' })

test('writes the first token only to FIRST_TOKEN_FILE, from where the printed command reads it', async (t) => {
  const directory = createDirectory(t)
  const name = "first 'token'"
  const path = join(realpathSync(directory), name)
  const service = await startService(t, { ACCESS_TOKENS: '', FIRST_TOKEN_FILE: name }, directory)
  const { stdout, stderr } = service.output()
  const token = readFileSync(path, 'utf8')
  t.match(token, /^plant_00000000_\w{39}\n$/)
  t.ok(readTokenId(token.trim()))
  t.notMatch(stdout + stderr, /plant_0/, 'the token is not printed')
  if (process.platform !== 'win32') t.equal(statSync(path).mode & 0o777, 0o600)
  t.ok(stdout.startsWith(`store: ${join(realpathSync(directory), 'data', 'plants.db')} (created)\n`), stdout)
  t.ok(stdout.includes(`written to ${path}, which only you can read.`))
  const [, line] = /^ {2}(curl .*)$/m.exec(stdout) ?? []
  t.equal((await promisify(execFile)('sh', ['-c', line as string])).stdout, '[]')
})

for (const engine of engines)
  test(`${engine.name}: a later start prints how to create a token, and how many are valid`, async (t) => {
    const { tokens } = await open(t, await engine.createDatabase(t))
    const command = 'npx plant-store token create --name NAME'
    const created =
      /^This store had no tokens, so one was created[\s\S]+\n {2}plant_00000000_\w{39}\n[\s\S]+\/plants\n$/
    t.match(await introduce(tokens), created)
    t.equal(await introduce(tokens), `valid tokens: 1. To create another: ${command}`)
    const file = join(createDirectory(t), 'token')
    await tokens.revoke('00000000', 1)
    t.equal(await introduce(tokens, file), `valid tokens: 0. To create one: ${command}`)
    t.notOk(existsSync(file), 'a store that had tokens gets no new first token')
  })

test('reports an existing or unwritable file in one line, and creates no token', async (t) => {
  const directory = createDirectory(t)
  const FIRST_TOKEN_FILE = join(directory, 'token')
  writeFileSync(FIRST_TOKEN_FILE, 'precious')
  const { code, stderr } = await runCommand(['serve'], { FIRST_TOKEN_FILE, PORT: '0' }, directory)
  t.equal(code, 1)
  const reason = 'already exists: start again; if that fails, move it away'
  const said = stderr.replaceAll(/^\{.*\n/gm, '')
  t.equal(said, `plant-store: FIRST_TOKEN_FILE ${FIRST_TOKEN_FILE} ${reason}\n`)
  t.equal(readFileSync(FIRST_TOKEN_FILE, 'utf8'), 'precious')
  const store = await open(t, `file:${join(directory, 'data', 'plants.db')}`)
  await t.rejects(introduce(store.tokens, join(directory, 'no', 'token')), {
    constructor: SettingError,
    message: /^FIRST_TOKEN_FILE cannot be written, so no token was created: ENOENT[^\n]+$/,
  })
  t.same(await store.tokens.all(), [])
})

test('of two concurrent starts, one creates the token and the other leaves no file', async (t) => {
  const store = await open(t, await sqlite.createDatabase(t))
  const directory = createDirectory(t)
  const said = await Promise.all(['one', 'two'].map((name) => introduce(store.tokens, join(directory, name))))
  t.match(said.toSorted(), [/^This store had no tokens, /, /^valid tokens: 1/])
  t.equal(readdirSync(directory).length, 1)
})

test('syncs FIRST_TOKEN_FILE and then its directory before it stores the token', async (t) => {
  const { tokens } = await open(t, await sqlite.createDatabase(t))
  const synced: boolean[] = []
  watchSyncs(t, (descriptor) => synced.push(fs.fstatSync(descriptor).isFile()))
  const add = async (token: Token) => {
    t.same(synced, [true, false])
    return tokens.add(token)
  }
  await introduce({ ...tokens, add }, join(createDirectory(t), 'token'))
  t.equal((await tokens.all()).length, 1)
})

test('a token that could not be stored leaves no file', async (t) => {
  const store = await open(t, await sqlite.createDatabase(t))
  const full = "CREATE TRIGGER full BEFORE INSERT ON tokens BEGIN SELECT raise(ABORT, 'full'); END"
  await store.sql.execute(full)
  const directory = createDirectory(t)
  await t.rejects(introduce(store.tokens, join(directory, 'token')), { name: 'StoreUnavailable' })
  t.same(readdirSync(directory), [])
})

test('a token that may have been stored keeps its file', async (t) => {
  const store = await open(t, await sqlite.createDatabase(t))
  const add: typeof store.tokens.add = async (token) => {
    await store.tokens.add(token)
    throw new StoreUnavailable('unknown', 'the answer to the COMMIT is lost')
  }
  const find = () => Promise.reject(new StoreUnavailable('unread', 'the database is away'))
  const file = join(createDirectory(t), 'token')
  await t.rejects(introduce({ ...store.tokens, add, find }, file), { name: 'StoreUnavailable' })
  t.match(await store.tokens.all(), [{ id: readTokenId(readFileSync(file, 'utf8').trim()) }])
})
