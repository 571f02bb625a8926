// Copies a whole store into another database. That takes over the id of the source's store, so that ETags and cursors
// stay valid, and an interrupted copy is recognized.
import { randomUUID } from 'node:crypto'
import type { Notes, Store, StoreView, Upkeep } from '../../store/engine.ts'
import { StoreRefused } from '../../store/errors.ts'
import { noteKeys } from '../import/notes.ts'
import { type CopyOptions, copyPlants, type Target } from './copied-plants.ts'

/**
 * Copies the store at `source`, which may be of an older version with a service running on it. Each step can be
 * repeated. Throws StoreRefused when the target holds anything but a copy of the source, or is the source itself.
 */
export async function copyStore(source: StoreView, target: Target, options: CopyOptions) {
  const { guard, release } = await claimTarget(source, target.notes)
  await checkTokens(source, target.upkeep)
  const { progress, ...copied } = await copyPlants(source, target, { ...options, guard })
  const tokens = await copyTokens(source, target.upkeep)
  // Those begun by writing to the target are replaced, too, so this comes last.
  const epochs = (await source.epochs()).filter(({ start }) => start <= copied.plants)
  if (epochs.length > 0) await target.upkeep.putEpochs(epochs)
  await copyProgress(progress, target.notes)
  await release()
  return { ...copied, tokens }
}

/**
 * Opens the target, and gives it the id of the source's store. A store reads its id when it is opened, so one that gets
 * another is opened again. Throws StoreRefused when the source is a standby, which may lag behind its primary, or when
 * the target holds anything but a copy of the source.
 */
export async function openTarget(source: StoreView, open: () => Promise<Store>): Promise<Target> {
  const { cluster } = await source.readStatus()
  if (cluster?.role === 'standby') throw new StoreRefused('--from is a standby: name its primary')
  const id = await source.id()
  const target = await open()
  try {
    const { upkeep } = target
    if (!upkeep) throw new StoreRefused('--to is of an engine that nothing can be copied to')
    if (!(await upkeep.adopt(id)))
      throw new StoreRefused(
        '--to holds plants or tokens that are not of --from: a copy needs an empty database',
      )
    if (target.id === id) return target as Target
  } catch (error) {
    await target.close()
    throw error
  }
  await target.close()
  return (await open()) as Target
}

/** The note of the copy that is running. */
const claim = 'copy'

/** Marks the target as that of this copy. `guard` throws when another copy has taken it over; `release` ends that. */
async function claimTarget(source: StoreView, target: Notes) {
  const run = randomUUID()
  const taken = await read(target.read)
  await target.change({ key: claim, before: taken, value: run })
  const guard = async () => {
    if ((await read(target.read)) !== run) throw new StoreRefused('another copy to --to has begun')
  }
  await guard()
  const release = () => target.change({ key: claim, before: run, value: '' })
  if ((await read(source.notes)) === run) {
    await release()
    throw new StoreRefused('--from and --to are the same database')
  }
  return { guard, release }
}

async function read(notes: Notes['read']): Promise<string> {
  return (await notes(claim)).get(claim) ?? ''
}

/** Throws StoreRefused when the target holds a token that the source lacks. */
async function checkTokens(source: StoreView, target: Upkeep): Promise<void> {
  const hashes = new Set((await source.tokens()).map(({ hash }) => hash))
  const other = (await target.tokens()).find(({ hash }) => !hashes.has(hash))
  if (other) throw new StoreRefused(`--to holds the token ${other.id}, which is not of --from`)
}

/**
 * Copies all tokens; resolves to their number. Throws StoreRefused when the target has got another token meanwhile: the
 * first one of each store has the same id.
 */
async function copyTokens(source: StoreView, target: Upkeep): Promise<number> {
  await checkTokens(source, target)
  const tokens = await source.tokens()
  for (const token of tokens) await target.putToken(token)
  return tokens.length
}

async function copyProgress(progress: Map<string, string>, target: Notes): Promise<void> {
  const held = await target.read(noteKeys)
  for (const [key, value] of progress)
    if (value !== held.get(key)) await target.change({ key, value, before: held.get(key) ?? '' })
}
