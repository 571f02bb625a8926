// Checks a store apart from its plants: the schema, its identity, the epochs, the ids and the tokens.
import { epochsVersion } from '../../store/format/migrations.ts'
import { findHead, type StoreView } from '../../store/view.ts'
import { scopes } from '../../tokens/tokens.ts'
import type { Fault, Faults } from './faults.ts'

/**
 * `head`: the last position to check, which is that of the last segment when the end of the log cannot be read;
 * `oldPlants`: up to there rows may have no checksum.
 */
export type Structure = { head: number; hasEnd: boolean; oldPlants: number }

/** Checks part by part, as each may meet an unreadable page. Rejects with StoreUnavailable when all of them are. */
export async function checkStructure(view: StoreView, faults: Faults): Promise<Structure> {
  const read = <T>(what: string, work: (view: StoreView) => Promise<T>) =>
    faults.reading(view, what, () => work(view))
  const check = async (what: string, find: (view: StoreView) => Promise<Fault[]>) =>
    faults.add(...((await read(what, find)) ?? []))
  // Read the epochs before the head: meanwhile a service may add plants and begin an epoch.
  const starts = view.version < epochsVersion ? undefined : await read('the list of epochs', readStarts)
  const end = await read('the end of the log', findHead)
  await check('the schema', findSchemaFaults)
  await check('the beginning of the log', findEarlyPlants)
  if (starts && end !== undefined) faults.add(...findEpochFaults(starts, end))
  await check('the ids', findDoubles)
  await check('the identity of the store', findIdentityFaults)
  await check('the tokens', findTokenFaults)
  // Plants that 1.0.0 added are in the first epoch: it ends with the first plant of this version.
  const oldPlants = starts?.[1] ?? Number.POSITIVE_INFINITY
  const head = end ?? (await read('the list of segments', findLastSegment)) ?? 0
  return { head, hasEnd: end !== undefined, oldPlants }
}

async function findLastSegment(view: StoreView): Promise<number> {
  const [row] = await view.select<[number]>('SELECT coalesce(max(last), 0) FROM segments')
  return (row as [number])[0]
}

async function readStarts(view: StoreView): Promise<number[]> {
  return (await view.select<[number]>('SELECT start FROM epochs ORDER BY number')).flat()
}

async function findSchemaFaults(view: StoreView): Promise<Fault[]> {
  const { names, text } = view.dialect.guards
  const found = (await view.select<[string]>(text)).flat()
  const faults = names
    .filter((name) => !found.includes(name))
    .map((name) => ({ detail: `${name} is missing from the schema` }))
  // Number of rows that a batch locks; always 1 in SQLite, which needs none.
  const [[locks]] = (await view.select<[number]>(`SELECT ${view.dialect.locks}`)) as [[number]]
  if (locks === 1) return faults
  return [...faults, { detail: `the table head has ${locks} rows, not the one that a batch locks` }]
}

async function findEarlyPlants(view: StoreView): Promise<Fault[]> {
  const rows = await view.select<[number]>(
    'SELECT position FROM plants WHERE position < 1 ORDER BY position LIMIT 1',
  )
  return rows.map(([position]) => ({ position, detail: 'is before the first position' }))
}

function findEpochFaults(starts: number[], head: number): Fault[] {
  const faults: Fault[] = []
  if (head > 0 && !starts.some((start) => start < 1))
    faults.push({ detail: 'the first plants belong to no epoch' })
  for (const [index, start] of starts.entries()) {
    if (start > head)
      faults.push({ detail: `an epoch begins after plant ${start}, but the log ends at plant ${head}` })
    else if (start < Math.max(0, starts[index - 1] ?? 0))
      faults.push({ detail: `an epoch begins after plant ${start}, before the one that it follows` })
  }
  return faults
}

async function findDoubles(view: StoreView): Promise<Fault[]> {
  const rows = await view.select<[number, number]>(
    `SELECT id, max(position) FROM plants WHERE id IS NOT NULL GROUP BY id HAVING count(*) > 1 ORDER BY 2 LIMIT 10`,
  )
  return rows.map(([id, position]) => ({
    position,
    detail: `has the id ${id}, which another plant has, too`,
  }))
}

async function findIdentityFaults(view: StoreView): Promise<Fault[]> {
  const [row] = await view.select<[string]>("SELECT value FROM meta WHERE key = 'store'")
  return /^[\w-]{22}$/.test(row?.[0] ?? '') ? [] : [{ detail: 'the table meta has no id of the store' }]
}

async function findTokenFaults(view: StoreView): Promise<Fault[]> {
  const rows = await view.select<[string, string, string]>('SELECT id, hash, scopes FROM tokens ORDER BY id')
  const isKnown = (scope: string) => (scopes as readonly string[]).includes(scope)
  return rows.flatMap(([id, hash, given]) => [
    ...(/^[0-9a-f]{64}$/.test(hash) ? [] : [{ detail: `token ${id} has a hash that is no SHA-256` }]),
    ...(given.split(' ').every(isKnown) ? [] : [{ detail: `token ${id} has scopes that do not exist` }]),
  ])
}
