// The pieces of work that a check consists of; where they are done, here or in a thread, is all the same to them.
import { StoreUnavailable } from '../store/store.ts'
import type { Range, StoreView } from '../store/view.ts'
import { checkPage, type PageReport } from './pages.ts'

/** A range of plants, or the database's own check of its file. */
export type Job = Range | 'integrity'
/** `failed`: why it could not be read. */
export type Done = PageReport | { failed: string }

/** Does a piece of work, and lets go of what it did it with. */
export type Hands = {
  do(job: Job): Promise<Done>
  /** How many pieces of work keep them busy. */
  readonly lanes: number
  close(): Promise<void>
}

export async function doJob(view: StoreView, job: Job): Promise<Done> {
  try {
    return job === 'integrity' ? await checkIntegrity(view) : await checkPage(view, job)
  } catch (error) {
    /* c8 ignore next: a fault that is not known yet */
    if (!(error instanceof StoreUnavailable)) throw error
    return { failed: error.message }
  }
}

/** PostgreSQL has no such check. */
async function checkIntegrity(view: StoreView): Promise<PageReport> {
  const rows = view.engine === 'SQLite' ? await view.select<[string]>('PRAGMA integrity_check(10)') : []
  // A text may be several lines, under the name of the database.
  const lines = rows.flatMap(([text]) => text.split('\n'))
  const faults = lines.filter((line) => line !== 'ok' && !line.startsWith('***'))
  return {
    lines: Buffer.alloc(0),
    unchecked: 0,
    faults: faults.map((detail) => ({ detail: `integrity check: ${detail}` })),
  }
}
