// Checks a store apart from its plants: the schema, the heads, the epochs and the ids.
import { epochsVersion } from '../../store/format/migrations.ts'
import type { StoreView } from '../../store/view.ts'
import type { Fault } from './faults.ts'

/** Returns the last position of the log, the number of its plants, and the faults. Rejects with StoreUnavailable. */
export async function checkStructure(view: StoreView) {
  // Read the epochs before the head: meanwhile a service may add plants and begin an epoch.
  const starts = view.version < epochsVersion ? undefined : await readStarts(view)
  // `locks`: number of rows that a batch locks; always 1 in SQLite, which needs none.
  const [row] = await view.select(
    `SELECT count(*), coalesce(min(position), 1), coalesce(max(position), 0), ${view.dialect.locks} FROM plants`,
  )
  const [plants, first, head, locks] = row as [number, number, number, number]
  const faults: Fault[] = await findSchemaFaults(view)
  if (locks !== 1) faults.push({ detail: `the table head has ${locks} rows, not the one that a batch locks` })
  if (first < 1) faults.push({ position: first, detail: 'is before the first position' })
  if (starts) faults.push(...findEpochFaults(starts, head))
  faults.push(...(await findDoubles(view)))
  return { head, plants, faults }
}

async function readStarts(view: StoreView): Promise<number[]> {
  return (await view.select<[number]>('SELECT start FROM epochs ORDER BY number')).flat()
}

async function findSchemaFaults(view: StoreView): Promise<Fault[]> {
  const { names, text } = view.dialect.guards
  const found = (await view.select<[string]>(text)).flat()
  return names
    .filter((name) => !found.includes(name))
    .map((name) => ({ detail: `${name} is missing from the schema` }))
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
