// Random plants: whatever is allowed comes back as it was.
import fc from 'fast-check'
import { test } from 'tap'
import type { NewPlant, Plant } from '../../schemas/plant.ts'
import { engines } from '../support/engines.ts'
import { isFull, seed, tellSeed } from '../support/full.ts'
import { request, startApp } from '../support/service.ts'

const plants = isFull ? 1000 : 200

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

for (const engine of engines)
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
