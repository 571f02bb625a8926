// verify: reads and checks a whole store. It changes nothing.
import { createHash } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import type { Command } from 'commander'
import type { Plant } from '../../schemas/plant.ts'
import { attempt } from '../attempt.ts'
import { count, type Progress, printResult, startProgress } from '../cli/console.ts'
import { addWorkOptions, findDatabase, type WorkOptions } from '../cli/options.ts'
import { makePlantCheck } from '../plants/faults.ts'
import { serializeItem } from '../plants/item.ts'
import { isDamaged, type Store, type StoredPlant, textOf } from '../store/engine.ts'
import { engineOf, withStore } from '../store/engines.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { scopes } from '../tokens/tokens.ts'

const help = `
A service may be running; verify checks the log up to its end at the start. It runs the database's own checks, then checks
gaps, the checksum and format of each plant, ids and tokens. It lists unreadable plants and the first ten other faults. If
there are any, the exit code is 1. The SHA-256 of the log is the one that copy prints.`

const pagePlants = 1000
const maxShown = 10
const findPlantFault = makePlantCheck()

export function define(command: Command): void {
  addWorkOptions(command).addHelpText('after', help).action(runVerify)
}

async function runVerify({ json, quiet, ...database }: WorkOptions): Promise<void> {
  const url = findDatabase(database)
  // The command only reads, so a signal may end the process at once.
  const progress = startProgress(quiet)
  const checking = withStore(url, { mode: 'read' }, (store) => checkStore(store, progress))
  const { plants, checksum, faults: all, unread } = await checking.finally(progress.end)
  const engine = engineOf(url).name
  const faultCount = all.length + unread.length
  const spans = unread.map(({ first, last, reason }) => `${nameSpan(first, last)} unreadable: ${reason}`)
  const faults = [...spans, ...all.slice(0, maxShown)]
  const summary = `${engine}: ${count(plants, 'plant')}, SHA-256 ${checksum ?? 'unknown'}`
  if (faultCount > 0) process.exitCode = 1
  const text = [summary, ...faults, faultCount === 0 ? 'no faults' : count(faultCount, 'fault')].join('\n')
  await printResult({ engine, plants, checksum, faultCount, faults }, text, json)
}

/** A range of unreadable plants. */
type Unread = { first: number; last: number; reason: string }

/**
 * Checks each part separately, because any part may contain an unreadable page. `checksum`: SHA-256 over a line per
 * plant; null if a plant or the head is unreadable. Rejects with StoreUnavailable if the database is unavailable.
 */
async function checkStore(store: Store, progress: Progress) {
  const faults: string[] = []
  const readPart = async <T>(what: string, read: () => T | Promise<T>): Promise<T | undefined> => {
    try {
      return await read()
    } catch (error) {
      faults.push(`${what} cannot be read: ${await explainUnread(store, error)}`)
      return undefined
    }
  }
  const head = await readPart('the end of the log', () => store.log.head())
  const checks = { ...store.checks, 'the tokens': () => findTokenFaults(store) }
  for (const [what, find] of Object.entries(checks))
    for (const fault of (await readPart(what, find)) ?? []) faults.push(fault)
  if (!/^[\w-]{22}$/.test(store.id)) faults.push('the store has no id')
  return { ...(await checkLog(store, head?.position, faults, progress)), faults }
}

/** Checks the plants up to the `head`, which is undefined if it is unreadable. */
async function checkLog(store: Store, head: number | undefined, faults: string[], progress: Progress) {
  const hash = createHash('sha256')
  const unread: Unread[] = []
  let [plants, before] = [0, 0]
  const addGap = (next: number) => {
    if (next > before + 1) faults.push(`${nameSpan(before + 1, next - 1)} missing`)
  }
  for await (const entries of readLog(store, head)) {
    for (const entry of entries) {
      const { position } = entry
      addGap(position)
      if ('reason' in entry) addUnread(unread, position, entry.reason)
      else {
        hash.update(`${textOf(entry)}\n`)
        const fault = position <= before ? 'exists twice' : findRowFault(entry)
        if (fault !== undefined) faults.push(`plant ${position} ${fault}`)
        plants++
      }
      before = Math.max(before, position)
    }
    progress.show(plants, head)
  }
  if (head !== undefined) addGap(head + 1)
  const checksum = head !== undefined && unread.length === 0 ? hash.digest('hex') : null
  return { plants, checksum, unread }
}

type LogEntry = StoredPlant | { position: number; reason: string }

/**
 * Reads page by page, or an unreadable page plant by plant. Without a head, stops at a page without a readable plant.
 */
async function* readLog(store: Store, head: number | undefined): AsyncGenerator<LogEntry[]> {
  const end = head ?? Number.MAX_SAFE_INTEGER
  const readPlant = (position: number): Promise<LogEntry[]> =>
    store
      .plants(position - 1, position, 1)
      .catch(async (error) => [{ position, reason: await explainUnread(store, error) }])
  for (let after = 0; after < end; ) {
    let entries: LogEntry[] = []
    try {
      // Not `after + pagePlants`: positions may be missing.
      entries = await store.plants(after, end, pagePlants)
      after = entries.length < pagePlants ? end : (entries.at(-1)?.position ?? end)
    } catch (error) {
      await explainUnread(store, error)
      for (const last = Math.min(after + pagePlants, end); after < last; after++)
        entries.push(...(await readPlant(after + 1)))
      if (head === undefined && entries.every((entry) => 'reason' in entry)) after = end
    }
    // A turn of the event loop handles signals.
    await turn()
    yield entries
  }
}

function addUnread(unread: Unread[], position: number, reason: string): void {
  const before = unread.at(-1)
  if (before?.last === position - 1) before.last = position
  else unread.push({ first: position, last: position, reason })
}

/** Resolves to the reason why a part is unreadable; rejects for other errors, and if the database is unavailable. */
async function explainUnread(store: Store, error: unknown): Promise<string> {
  if (!(error instanceof StoreUnavailable)) throw error
  await store.status()
  return error.message
}

/** Returns a fault of a row, as the end of a sentence that starts with "plant 7". */
function findRowFault(row: StoredPlant): string | undefined {
  const { id, item, mark } = row
  if (isDamaged(row)) return 'does not match its checksum'
  if (!/^[\w-]{11}$/.test(mark)) return 'has no mark'
  const plant: Plant | undefined = attempt(() => JSON.parse(item))
  if (plant === undefined) return 'is not JSON'
  const fault = findPlantFault(id === null ? plant : { ...plant, id })
  if (fault !== undefined) return `is not valid: ${fault}`
  return serializeItem(plant) === item ? undefined : 'is not in the stored format'
}

async function findTokenFaults(store: Store): Promise<string[]> {
  const known: readonly string[] = scopes
  const faults: string[] = []
  for (const { id, hash, scopes: given } of await store.tokens.all()) {
    if (!/^[0-9a-f]{64}$/.test(hash)) faults.push(`token ${id} has a hash that is not a SHA-256`)
    if (!given.every((scope) => known.includes(scope))) faults.push(`token ${id} has unknown scopes`)
  }
  return faults
}

const nameSpan = (first: number, last: number) =>
  first === last ? `plant ${first} is` : `plants ${first} to ${last} are`
