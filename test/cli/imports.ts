// Inputs for import, and the plants in the log after it.
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { runCommand, spawnCli } from '../support/commands.ts'
import { createDirectory, type Engine, engines } from '../support/engines.ts'
import { open, openStore, type Store } from '../support/stores.ts'

/**
 * The engine with the fastest commands, for behaviour that does not depend on the engine: PostgreSQL, which needs no
 * thread.
 */
export const quickest = engines.at(-1) as Engine

export type Plant = { name: string; tag: string; id?: number }

export const fixture: Plant[] = JSON.parse(
  readFileSync(new URL('../fixtures/plants.json', import.meta.url), 'utf8'),
)

/** The same plants in each format. */
export const written: Record<string, (plants: Plant[]) => string> = {
  ndjson: (plants) => plants.map((plant) => `${JSON.stringify(plant)}\n`).join(''),
  json: (plants) => JSON.stringify(plants, null, 2),
  csv: (plants) => `name,tag\r\n${plants.map(({ name, tag }) => `${cell(name)},${cell(tag)}\r\n`).join('')}`,
}

function cell(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Writes a file named `input`, which is removed when the test ends. */
export function writeInput(t: Test, bytes: string | Buffer): string {
  const path = join(createDirectory(t), 'input')
  writeFileSync(path, bytes)
  return path
}

/** All plants in the log after a position, in its order; `id` only if the plant has one. */
export async function plantsIn({ sql }: Store, after = 0): Promise<Plant[]> {
  const text = 'SELECT item, id FROM plants WHERE position > $1 ORDER BY position'
  return (await sql.select(text, [after])).map(({ item, id }) => ({
    ...JSON.parse(String(item)),
    ...(id !== null && { id: Number(id) }),
  }))
}

/** All plants of the database at a URL. */
export async function readPlants(url: string): Promise<Plant[]> {
  const store = await openStore(url)
  return plantsIn(store).finally(() => store.close())
}

/**
 * A store for many imports. `next` runs one: it resolves to the counts, the lines on stderr with `input` for the path, and
 * the plants that were added.
 */
export async function shareStore(t: Test, url: string) {
  const store = await open(t, url)
  let head = 0
  return {
    store,
    async next(path: string, ...options: string[]) {
      const ran = await runCommand(['import', path, '--json', ...options], { DATABASE_URL: url })
      const plants = await plantsIn(store, head)
      head += plants.length
      const said = ran.stderr.replaceAll(path, 'input').split('\n').slice(0, -1)
      const counts: Record<string, unknown> = JSON.parse(ran.stdout || '{}')
      return { code: ran.code, counts, said, plants }
    },
  }
}

/** Runs `plant-store import -` with this input. */
export function pipeImport(t: Test, url: string, input: string, ...args: string[]) {
  return spawnCli(t, ['import', '-', ...args], { DATABASE_URL: url }, { input }).ended
}
