// Checks the plants of a log page by page. Where the file is damaged, it finds out which plants can be read.
import { createHash } from 'node:crypto'
import { scannedPlants } from '../../limits.ts'
import type { Positions, StoreView } from '../../store/engine.ts'
import { checkPage, type PageReport } from './check-page.ts'
import { explainUnread, type Faults } from './faults.ts'
import { checkStructure } from './structure.ts'

/** The positions `first` to `last`. */
type Span = { first: number; last: number }

/**
 * Checks the structure, then all plants. `head`: the last position that was looked at; `unchecked`: number of plants
 * without a checksum, written by a version that had none; `checksum`: SHA-256 over a line per plant, as `copy` prints it,
 * null when not all could be read; `unread`: the plants that cannot be read. Rejects with StoreUnavailable when the
 * database is away.
 */
export async function checkLog(
  view: StoreView,
  faults: Faults,
  onProgress: (done: number, total: number) => void,
) {
  const { head, hasEnd, oldPlants } = await checkStructure(view, faults)
  const hash = createHash('sha256')
  const unread: (Span & { reason: string })[] = []
  let [plants, unchecked] = [0, 0]
  for (let after = 0; after < head; ) {
    const from = after
    const pages = await checkNext(view, { after, last: head }, oldPlants)
    for (const page of pages) {
      faults.add(...page.faults)
      hash.update(page.text)
      unchecked += page.unchecked
      plants += page.plants
      after = page.last
      if (page.unread) noteUnread(unread, after, page.unread)
    }
    if (pages.every(({ faults, unread }) => faults.length === 0 && !unread)) {
      const what = `the segments of plants ${from + 1} to ${after}`
      const check = async () => view.checkRange?.({ after: from, last: after })
      faults.add(...((await faults.reading(view, what, check)) ?? []))
    }
    onProgress(after, head)
  }
  for (const { first, last, reason } of unread)
    faults.add({
      detail: `${first === last ? `plant ${first}` : `plants ${first} to ${last}`} cannot be read: ${reason}`,
    })
  const checksum = hasEnd && unread.length === 0 ? hash.digest('hex') : null
  return { plants, unchecked, checksum, head, unread: unread.map(({ first, last }) => ({ first, last })) }
}

/** Checks the first page of a range; in parts, if it cannot be read. */
async function checkNext(view: StoreView, range: Positions, oldPlants: number): Promise<PageReport[]> {
  const { after, last } = range
  try {
    return [await checkPage(view, range, oldPlants)]
  } catch (error) {
    const unread = await explainUnread(view, error)
    const end = Math.min(after + scannedPlants, last)
    if (end - after === 1) return [{ last: end, text: '', plants: 0, unchecked: 0, faults: [], unread }]
    const middle = Math.floor((after + end) / 2)
    return [
      ...(await checkNext(view, { after, last: middle }, oldPlants)),
      ...(await checkNext(view, { after: middle, last: end }, oldPlants)),
    ]
  }
}

function noteUnread(unread: (Span & { reason: string })[], position: number, reason: string): void {
  const before = unread.at(-1)
  if (before?.last === position - 1) before.last = position
  else unread.push({ first: position, last: position, reason })
}

/** The plants up to `head` that can be read. */
export function invert(unread: Span[], head: number): Span[] {
  const starts = [1, ...unread.map(({ last }) => last + 1)]
  const ends = [...unread.map(({ first }) => first - 1), head]
  return starts
    .map((first, index) => ({ first, last: ends[index] as number }))
    .filter(({ first, last }) => first <= last)
}
