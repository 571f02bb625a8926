// The pieces of work that a check consists of; where they are done, here or in a thread, is all the same to them.
import { StoreUnavailable } from '../../store/store.ts'
import type { Range, StoreView } from '../../store/view.ts'
import { checkPage, type PageReport } from './check-range.ts'

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
    return { failed: whyUnread(error) }
  }
}

/** Why the store could not be read; any other error is thrown on. */
export function whyUnread(error: unknown): string {
  if (error instanceof StoreUnavailable) return error.message
  throw error
}

async function checkIntegrity(view: StoreView): Promise<PageReport> {
  const rows = await view.select<[string]>(view.dialect.integrity)
  // A text may be several lines, under the name of the database.
  const lines = rows.flatMap(([text]) => text.split('\n'))
  const faults = lines.filter((line) => line !== 'ok' && !line.startsWith('***'))
  return {
    lines: Buffer.alloc(0),
    unchecked: 0,
    faults: faults.map((detail) => ({ detail: `integrity check: ${detail}` })),
  }
}
