// Over HTTP, while the files of a SQLite store are out of sight for a moment, again and again: each answer to an addition
// is true, and the plants are listed meanwhile.
import { chmodSync, chownSync } from 'node:fs'
import { dirname } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import type { Plant } from '../../schemas/plant.ts'
import { sqlite } from '../support/engines.ts'
import { isFull } from '../support/full.ts'
import { request, startApp } from '../support/service.ts'
import { letOthersEnd, skipUnlessOthersEnter } from '../support/tools.ts'

const rounds = isFull ? 25 : 10
const skip = skipUnlessOthersEnter()

/** Nobody in particular, whom a directory can be closed to. */
const user = 65_534

/** Root may look everywhere. Whatever is loaded or written outside the directory must have been by then. */
function becomeUser(t: Test, path: string): void {
  if (process.geteuid?.() !== 0) return
  chownSync(dirname(path), user, user)
  letOthersEnd()
  process.seteuid?.(user)
  t.teardown(() => process.seteuid?.(0))
}

test('the directory is closed again and again: each answer is true', { skip }, async (t) => {
  const database = await sqlite.createDatabase(t)
  const path = fileURLToPath(database)
  const { url } = await startApp(t, database)
  t.equal((await request(`${url}/plants`, { body: { name: 'first', tag: '' } })).status, 200)
  t.equal((await request(`${url}/plants?limit=1`)).status, 200)
  becomeUser(t, path)
  const answers = new Map<string, string>()
  let isOver = false
  const adding = Array.from({ length: 8 }, async (_, client) => {
    for (let n = 0; !isOver; n++) {
      const name = `${client}-${n}`
      const { status, json } = await request(`${url}/plants`, { body: { name, tag: '' } })
      answers.set(name, status === 200 ? 'added' : String((json() as { type: string }).type))
    }
  })
  const moreAnswers = async (count: number) => {
    for (const { size } = answers; answers.size < size + count; ) await request(`${url}/plants?limit=1`)
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
  const names = ((await request(`${url}/plants`)).json() as Plant[]).map(({ name }) => name)
  const answered = (type: RegExp) => [...answers].filter(([, is]) => type.test(is)).map(([name]) => name)
  t.equal(new Set(names).size, names.length, 'nothing is added twice')
  t.ok(answered(/nothing-added/).length >= rounds)
  t.strictSame(
    answered(/nothing-added/).filter((name) => names.includes(name)),
    [],
    'nothing that was denied is there',
  )
  t.strictSame(
    answered(/^added/).filter((name) => !names.includes(name)),
    [],
    'nothing that was acknowledged is lost',
  )
})
