// The token commands: their output, and which token they select.
import { test } from 'tap'
import { createFirst } from '../../src/tokens/first-token.ts'
import { isValidAt } from '../../src/tokens/tokens.ts'
import { runCommand } from '../support/commands.ts'
import { sqlite } from '../support/engines.ts'
import { open } from '../support/stores.ts'

test('tokens are created, listed and revoked', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  await open(t, DATABASE_URL)
  const token = (...args: string[]) => runCommand(['token', ...args], { DATABASE_URL })
  const created = [
    await token('create', '--name', 'all'),
    await token('create', '--name', 'reader', '--scope', 'plants:read', 'plants:read', '--expires', '90d'),
    await token('create', '--name', 'writer', '--scope', 'plants:write', '--expires', '2100-01-31'),
  ]
  for (const { code, stdout, stderr } of created) {
    const ends = stderr === '' ? '' : `${stdout.slice(6, 14)} expires at `
    t.match({ code, stderr }, { code: 0, stderr: ends })
    t.match(stdout, /^plant_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}_[0-9A-Za-z]{6}\n$/)
  }
  t.match(created[2]?.stderr, / expires at 2100-02-01T00:00:00\.000Z\n$/, 'through that day')
  const { token: text, ...made } = JSON.parse((await token('create', '--name', '花', '--json')).stdout)
  const { id: last } = made
  t.strictSame(made, { id: last, name: '花', scopes: ['plants:read', 'plants:write'], expires: null })
  t.equal(text.slice(6, 14), last)
  t.strictSame(JSON.parse((await token('revoke', text, '--json')).stdout), { id: last, name: '花' })
  const ids = created.map(({ stdout }) => stdout.slice(6, 14))
  t.match(await token('revoke', ids[0] as string), { code: 0, stdout: `revoked ${ids[0]}\n` })
  t.match(await token('create', '--name', 'reader'), {
    code: 1,
    stdout: '',
    stderr: /^plant-store: a valid token named "reader" exists: [^\n]+\n$/,
  })

  const list = JSON.parse((await token('list', '--json')).stdout)
  const never = { expires: null, lastUsed: null }
  const expires = '2100-02-01T00:00:00.000Z'
  t.match(list, [
    { id: ids[0], name: 'all', scopes: ['plants:read', 'plants:write'], ...never },
    { id: ids[1], name: 'reader', scopes: ['plants:read'], revoked: null },
    { id: ids[2], name: 'writer', scopes: ['plants:write'], expires, revoked: null },
    { name: '花' },
  ])
  const table = (await token('list')).stdout
  t.equal(table.split('\n').length, 6)
  t.match(table, / {2}花 {7}plants:read/)
  for (const { stdout } of created) t.notMatch(table + JSON.stringify(list), stdout.slice(15, 47))
  t.match(await token('create', '--name', '🌱'.repeat(100), '--expires', '99999y'), { code: 0 })
  const units = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800, y: 31_536_000 }
  for (const [unit, seconds] of Object.entries(units)) {
    const made = await token('create', '--name', unit, '--expires', `90${unit}`, '--json')
    const inMs = Date.parse(JSON.parse(made.stdout).expires) - Date.now()
    t.ok(Math.abs(inMs - 90_000 * seconds) < 30_000, unit)
  }
})

test('revoke requires an id during a rotation, and lists the old token first', async (t) => {
  const DATABASE_URL = await sqlite.createDatabase(t)
  await open(t, DATABASE_URL)
  const token = (...args: string[]) => runCommand(['token', ...args], { DATABASE_URL })
  const old = (await token('create', '--name', 'app')).stdout.slice(6, 14)
  const fresh = (await token('rotate', 'app', '--overlap', '1h')).stdout.slice(6, 14)
  const { code, stdout, stderr } = await token('revoke', 'app')
  t.strictSame([code, stdout], [1, ''])
  const [one, other] = [old, fresh].map((id) => `${id} \\(created at \\S+Z\\)`)
  const both = `2 tokens are named "app"; give an id, oldest first: ${one} or ${other}`
  t.match(stderr, new RegExp(`^plant-store: ${both}\n$`))
  await token('create', '--name', old)
  t.match(await token('revoke', old), { code: 0, stdout: `revoked ${old}\n` })
  t.match(await token('revoke', 'app'), { code: 0, stdout: `revoked ${fresh}\n` }, 'the name is unique again')
})

test('refuses an unknown token in one line that contains no secret', async (t) => {
  const [DATABASE_URL, other] = [await sqlite.createDatabase(t), await sqlite.createDatabase(t)]
  const { tokens } = await open(t, DATABASE_URL)
  await createFirst(tokens)
  // It has the same id.
  const foreign = String(await createFirst((await open(t, other)).tokens))
  const reason =
    /^plant-store: no token has this id or value, and no valid one has this name \(\S.* token list\)\n$/
  for (const command of ['revoke', 'rotate'])
    for (const text of ['abcdefgh', 'nobody', foreign]) {
      const { code, stderr } = await runCommand(['token', command, text], { DATABASE_URL })
      t.match({ code, stderr }, { code: 1, stderr: reason })
      t.notMatch(stderr, foreign.slice(15))
    }
  t.equal((await tokens.all()).filter(isValidAt(Date.now())).length, 1)
})
