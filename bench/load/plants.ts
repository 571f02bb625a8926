// Plants for the load: real names, made different from each other by a number.
import { readFileSync } from 'node:fs'

type Plant = { name: string; tag: string }

const real = JSON.parse(
  readFileSync(new URL('../../test/fixtures/plants.json', import.meta.url), 'utf8'),
) as Plant[]

/** The plant number `n`. */
export function makePlant(n: number): Plant {
  const { name, tag } = real[n % real.length] as Plant
  return { name: `${name} ${n}`, tag }
}
