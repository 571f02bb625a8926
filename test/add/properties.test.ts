// Random plants: whatever is allowed comes back as it was, whatever is not is refused.
import fc from 'fast-check'
import { test } from 'tap'
import type { NewPlant, Plant } from '../../schemas/plant.ts'
import { engines } from '../support/engines.ts'
import { isFull, seed, tellSeed } from '../support/full.ts'
import { request, startApp } from '../support/service.ts'

const plants = isFull ? 1000 : 200
const batch = 50

/** Any character of Unicode but control characters and surrogates. */
const character = fc
  .oneof(
    fc.integer({ min: 0x20, max: 0x7e }),
    fc.integer({ min: 0xa0, max: 0xd7ff }),
    fc.integer({ min: 0xe000, max: 0xffff }),
    fc.integer({ min: 0x10000, max: 0x10ffff }),
  )
  .map((codePoint) => String.fromCodePoint(codePoint))
const text = (minLength: number, maxLength: number) =>
  fc.string({ unit: character, minLength, maxLength, size: 'max' })
const name = fc.oneof(text(1, 255), text(1, 12)).filter((value) => value.trim() !== '')
const tag = fc.oneof(text(0, 255), text(0, 12))
const id = fc.oneof(fc.maxSafeNat(), fc.integer({ min: 0, max: 1000 }))
const allowed: fc.Arbitrary<NewPlant> = fc.record({ name, tag, id }, { requiredKeys: ['name', 'tag'] })

const control = fc
  .oneof(
    fc.integer({ min: 0, max: 0x1f }),
    fc.integer({ min: 0x7f, max: 0x9f }),
    fc.integer({ min: 0xd800, max: 0xdfff }),
  )
  .map((codePoint) => String.fromCharCode(codePoint))
/** Text with one character too bad. A lone surrogate beside its other half would be a proper pair: both go between spaces. */
const badText = fc
  .tuple(text(0, 20), control, text(0, 20))
  .map(([before, bad, after]) => `${before} ${bad} ${after}`)
const blank = fc.string({ unit: fc.constantFrom(' ', '\u00a0'), maxLength: 20 })
const noText = fc.oneof(fc.integer(), fc.boolean(), fc.constant(null), fc.array(fc.string()), fc.object())
const badName = fc.oneof(badText, blank, text(256, 300), noText)
const badTag = fc.oneof(badText, text(256, 300), noText)
const badId = fc.oneof(
  fc.integer({ max: -1 }),
  fc.double({ noInteger: true, noNaN: true, noDefaultInfinity: true }),
  fc.double({ min: 2 ** 53, noNaN: true, noDefaultInfinity: true }),
  fc.maxSafeNat().map(String),
  fc.boolean(),
  fc.constant(null),
)
const otherKey = fc
  .string({ minLength: 1 })
  .filter((key) => !['name', 'tag', 'id', '__proto__'].includes(key))
const disallowed: fc.Arbitrary<unknown> = fc.oneof(
  fc.record({ name: badName, tag }),
  fc.record({ name, tag: badTag }),
  fc.record({ name, tag, id: badId }),
  fc.record({ name }),
  fc.record({ tag }),
  fc.tuple(allowed, otherKey, fc.jsonValue()).map(([plant, key, value]) => ({ ...plant, [key]: value })),
  fc.array(allowed, { maxLength: 2 }),
  fc.oneof(fc.string(), fc.integer(), fc.constant(null)),
)

for (const engine of engines) {
  test(`${engine.name}: ${plants} random plants that are allowed come back identical, in order`, async (t) => {
    const { url } = await startApp(t, await engine.createDatabase(t))
    const known = new Map<number, string>()
    const expected: Plant[] = []
    tellSeed(t)
    let count = 0
    const add = async (plant: NewPlant) => {
      const shown = { name: plant.name, tag: plant.tag }
      const item = JSON.stringify(shown)
      const former = plant.id === undefined ? undefined : known.get(plant.id)
      const answer = await request(`${url}/plants`, { body: plant })
      if (answer.status !== (former === undefined || former === item ? 200 : 409))
        throw new Error(`${answer.status} ${answer.text}`)
      if (answer.status === 200 && answer.text !== item) throw new Error(`came back as ${answer.text}`)
      if (former === undefined) expected.push(shown)
      if (plant.id !== undefined && former === undefined) known.set(plant.id, item)
      count++
    }
    await fc.assert(fc.asyncProperty(allowed, add), { seed, numRuns: plants, endOnFailure: true })
    t.equal(count, plants)
    t.ok(expected.length > plants / 2)
    t.equal((await request(`${url}/plants`)).text, JSON.stringify(expected))
  })

  test(`${engine.name}: ${plants} random plants that are not allowed are refused`, async (t) => {
    const { url } = await startApp(t, await engine.createDatabase(t))
    tellSeed(t)
    let count = 0
    const refuse = async (bodies: unknown[]) => {
      const answers = await Promise.all(
        bodies.map((body) => request(`${url}/plants`, { body: JSON.stringify(body) })),
      )
      const taken = answers.findIndex(({ status }) => status !== 400)
      if (taken !== -1) throw new Error(`${answers[taken]?.status} for ${JSON.stringify(bodies[taken])}`)
      count += bodies.length
    }
    const batches = fc.array(disallowed, { minLength: batch, maxLength: batch })
    await fc.assert(fc.asyncProperty(batches, refuse), { seed, numRuns: plants / batch, endOnFailure: true })
    t.equal(count, plants)
    t.equal((await request(`${url}/plants`)).text, '[]')
  })
}
