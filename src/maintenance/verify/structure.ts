// Checks a store apart from its plants: what the engine finds, the epochs, its identity and the tokens.
import type { Damage, StoreView } from '../../store/engine.ts'
import type { Epoch } from '../../store/epochs.ts'
import { epochsVersion } from '../../store/format/migrations.ts'
import { scopes } from '../../tokens/tokens.ts'
import type { Faults } from './faults.ts'

/**
 * Checks part by part, as each may meet an unreadable page. `head`: the last position to check, which is an earlier one
 * when the end of the log cannot be read; `oldPlants`: up to there rows may have no checksum. Rejects with
 * StoreUnavailable when all parts are unreadable.
 */
export async function checkStructure(view: StoreView, faults: Faults) {
  const read = <T>(what: string, work: () => Promise<T>) => faults.reading(view, what, work)
  const check = async (what: string, find: () => Promise<Damage[]>) =>
    faults.add(...((await read(what, find)) ?? []))
  // Read the epochs before the head: meanwhile a service may add plants and begin an epoch.
  const epochs = view.version < epochsVersion ? undefined : await read('the list of epochs', view.epochs)
  const end = await read('the end of the log', view.head)
  for (const [what, find] of Object.entries(view.checks ?? {})) await check(what, find)
  if (epochs && end !== undefined) faults.add(...findEpochFaults(epochs, end))
  await check('the identity of the store', () => findIdentityFaults(view))
  await check('the tokens', () => findTokenFaults(view))
  // Plants that 1.0.0 added are in the first epoch: it ends with the first plant of this version.
  const oldPlants = epochs?.[1]?.start ?? Number.POSITIVE_INFINITY
  const head = end ?? (await read('the list of segments', async () => view.headAround?.())) ?? 0
  return { head, hasEnd: end !== undefined, oldPlants }
}

function findEpochFaults(epochs: Epoch[], head: number): Damage[] {
  const faults: Damage[] = []
  if (head > 0 && !epochs.some(({ start }) => start < 1))
    faults.push({ detail: 'the first plants belong to no epoch' })
  for (const [index, { start }] of epochs.entries()) {
    if (start > head)
      faults.push({ detail: `an epoch begins after plant ${start}, but the log ends at plant ${head}` })
    else if (start < Math.max(0, epochs[index - 1]?.start ?? 0))
      faults.push({ detail: `an epoch begins after plant ${start}, before the one that it follows` })
  }
  return faults
}

async function findIdentityFaults(view: StoreView): Promise<Damage[]> {
  return /^[\w-]{22}$/.test(await view.id()) ? [] : [{ detail: 'the table meta has no id of the store' }]
}

async function findTokenFaults(view: StoreView): Promise<Damage[]> {
  const isKnown = (scope: string) => (scopes as readonly string[]).includes(scope)
  return (await view.tokens()).flatMap(({ id, hash, scopes: given }) => [
    ...(/^[0-9a-f]{64}$/.test(hash) ? [] : [{ detail: `token ${id} has a hash that is no SHA-256` }]),
    ...(given.every(isKnown) ? [] : [{ detail: `token ${id} has scopes that do not exist` }]),
  ])
}
