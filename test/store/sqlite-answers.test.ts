// The directory of a SQLite store becomes inaccessible for moments: responses stay correct, and plants can still be
// listed.
import { chmodSync, chownSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { sqlite } from '../support/engines.ts'
import { isFull } from '../support/full.ts'
import { request, startApp } from '../support/service.ts'
import { letOthersEnd, skipUnlessOthersEnter } from '../support/tools.ts'
import { Ledger, list, post } from './ledger.ts'

const rounds = isFull ? 25 : 10
const skip = skipUnlessOthersEnter()

/** A user whose access can be revoked, unlike that of root. */
const user = 65_534

/** Gives up root. Everything outside the directory must have been loaded before. */
function becomeUser(t: Test, path: string): void {
  if (process.geteuid?.() !== 0) return
  chownSync(dirname(path), user, user)
  letOthersEnd()
  process.seteuid?.(user)
  t.teardown(() => process.seteuid?.(0))
}

test('returns correct outcomes while the directory is repeatedly inaccessible', { skip }, async (t) => {
  const database = await sqlite.createDatabase(t)
  const path = fileURLToPath(database)
  const { url } = await startApp(t, database)
  t.equal((await request(`${url}/plants`, { body: { name: 'first', tag: '' } })).status, 200)
  t.equal((await request(`${url}/plants?limit=1`)).status, 200)
  becomeUser(t, path)
  const ledger = new Ledger()
  let isOver = false
  const adding = Array.from({ length: 8 }, async (_, client) => {
    for (let n = 0; !isOver; n++) await post(ledger, url, { name: `${client}-${n}`, tag: '' })
  })
  const countAnswers = () => ledger.acknowledged.size + ledger.refused.size + ledger.unknown
  const moreAnswers = async (count: number) => {
    for (const goal = countAnswers() + count; countAnswers() < goal; ) await request(`${url}/plants?limit=1`)
  }
  for (let round = 0; round < rounds; round++) {
    await moreAnswers(1 + (round % 9))
    chmodSync(dirname(path), 0)
    t.equal((await request(`${url}/plants?limit=1`)).status, 200)
    await moreAnswers(1 + (round % 5))
    chmodSync(dirname(path), 0o700)
  }
  isOver = true
  await Promise.all(adding)
  t.equal((await request(`${url}/plants`, { body: { name: 'last', tag: '' } })).status, 200)
  t.ok(ledger.refused.size >= rounds)
  t.equal(ledger.cut, 0)
  t.strictSame(ledger.findFaults((await list(`${url}/plants`)).names), [])
})
