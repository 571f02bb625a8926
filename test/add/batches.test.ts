// Group commit, through the front door: many writers at once, and the bounded line.
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import type { Plant } from '../../schemas/plant.ts'
import { engines, sqlite } from '../support/engines.ts'
import { isFull } from '../support/full.ts'
import { type Answer, request, startApp } from '../support/service.ts'
import { compose, exchange } from '../support/wire.ts'

const writers = 64
const perWriter = isFull ? 20 : 3

const rounds = isFull ? 20 : 8

for (const engine of engines) {
  test(`${engine.name}: ${writers} writers at once keep their own order in a log that only grows`, async (t) => {
    const { url } = await startApp(t, await engine.createDatabase(t))
    let seen: string[] = []
    async function write(writer: number): Promise<void> {
      for (let n = 0; n < perWriter; n++) {
        const answer = await request(`${url}/plants`, { body: { name: `${writer}-${n}`, tag: '' } })
        t.equal(answer.status, 200)
        const names = ((await request(`${url}/plants`)).json() as Plant[]).map(({ name }) => name)
        if (!names.includes(`${writer}-${n}`)) t.fail(`${writer}-${n} was answered and is not in the list`)
        // Lists that were asked for at the same time may come back in any order; each is a beginning of the log.
        const [shorter, longer] = names.length < seen.length ? [names, seen] : [seen, names]
        if (longer.slice(0, shorter.length).join() !== shorter.join()) t.fail('two lists disagree')
        seen = longer
      }
    }
    await Promise.all(Array.from({ length: writers }, (_, writer) => write(writer)))
    t.equal(seen.length, writers * perWriter)
    for (let writer = 0; writer < writers; writer++) {
      const own = seen.filter((name) => name.startsWith(`${writer}-`))
      t.same(
        own,
        Array.from({ length: perWriter }, (_, n) => `${writer}-${n}`),
      )
    }
  })

  test(`${engine.name}: an id that many writers use at once is added once, and all are told so`, async (t) => {
    const { url } = await startApp(t, await engine.createDatabase(t))
    for (let round = 0; round < rounds; round++) {
      const answers = await Promise.all(
        Array.from({ length: 16 }, (_, n) =>
          request(`${url}/plants`, { body: { name: `name ${n % 4}`, tag: `${round}`, id: round } }),
        ),
      )
      const winners = answers.flatMap(({ status }, n) => (status === 200 ? [n % 4] : []))
      t.equal(winners.length, 4, 'the first and its three repetitions')
      t.equal(new Set(winners).size, 1, 'all of the same name')
      t.ok(answers.every(({ status }) => status === 200 || status === 409))
    }
    t.equal(((await request(`${url}/plants`)).json() as Plant[]).length, rounds)
  })
}

test('beyond the waiting line plants are refused with 503, and what was acknowledged is there', async (t) => {
  const database = await sqlite.createDatabase(t)
  const { url, port } = await startApp(t, database)
  // Of each connection four requests are worked on at a time: not quite enough to fill the line.
  const connections = 1000
  const perConnection = 4
  const other = new DatabaseSync(fileURLToPath(database))
  other.exec('BEGIN IMMEDIATE')
  const exchanges = Array.from({ length: connections }, (_, c) =>
    exchange(
      port,
      Buffer.concat(
        Array.from({ length: perConnection }, (_, n) =>
          compose({ body: JSON.stringify({ name: `${c}-${n}`, tag: '' }) }),
        ),
      ),
      perConnection,
    ),
  )
  // The line is full once a plant is refused; the answers before it on the other connections still wait.
  const probes: Promise<Answer>[] = []
  let full = false
  while (!full) {
    probes.push(request(`${url}/plants`, { body: { name: `probe ${probes.length}`, tag: '' } }))
    probes.at(-1)?.then(({ status }) => {
      full ||= status === 503
    })
    t.equal((await request(`${url}/plants`)).text, '[]', 'lists are answered meanwhile')
  }
  other.exec('ROLLBACK')
  const probed = await Promise.all(probes)
  const answers = [...(await Promise.all(exchanges)).flat(), ...probed]
  other.close()
  const added = answers.filter(({ status }) => status === 200)
  const refused = answers.filter(({ status }) => status === 503)
  t.equal(added.length + refused.length, connections * perConnection + probed.length)
  t.ok(refused.length > 0, `${refused.length} were refused`)
  // A machine that takes longer to fill the line than the store may take does not hear of those that were at work.
  type Seen = (typeof answers)[number]
  const isUnknown = ({ text }: Seen) => /not known whether the plant was added/.test(text)
  const isHonest = (answer: Seen) =>
    answer.headers.get('retry-after') === '1' &&
    (isUnknown(answer) || /Nothing was (added|changed)/.test(answer.text))
  t.strictSame(
    refused.filter((answer) => !isHonest(answer)).map(({ text }) => text),
    [],
    'each is told so',
  )
  const names = ((await request(`${url}/plants`)).json() as Plant[]).map(({ name }) => name)
  const there = new Set(names)
  t.equal(there.size, names.length, 'each once')
  t.same(
    added.map(({ text }) => JSON.parse(text).name).filter((name) => !there.has(name)),
    [],
    'what was acknowledged is there',
  )
  t.ok(names.length - added.length <= refused.filter(isUnknown).length, 'and nothing that was denied')
})
