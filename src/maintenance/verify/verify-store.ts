// Reads a whole store and holds it against all that the service promises of one. It changes nothing, and a service may be
// at work on the store meanwhile: what is checked is the log up to the plant that was the last when it began.
import { createHash } from 'node:crypto'
import { setImmediate as turn } from 'node:timers/promises'
import { engineOf } from '../../store/engines.ts'
import { openView } from '../../store/open.ts'
import { findHead, type Range, type StoreView } from '../../store/view.ts'
import { type Fault, Faults } from './faults.ts'
import { type Done, doJob, type Hands, whyUnread } from './jobs.ts'
import { checkStructure, type Structure } from './structure.ts'
import { Threads } from './verify-threads.ts'

const pagePlants = 1000
/** Threads take longer to start than this many plants to check. */
const threadedPlants = 50_000

export type VerifyReport = {
  engine: string
  schemaVersion: number
  plants: number
  /** How many of them have no checksum: a version wrote them that had none. */
  unchecked: number
  /** SHA-256 over the line of each plant, as `copy` prints it; null when not all of them could be read. */
  checksum: string | null
  faultCount: number
  /** The first of them. */
  faults: readonly Fault[]
}

export type VerifyOptions = {
  /** Aborts with the error that the check is to reject with. */
  signal?: AbortSignal
  onProgress?: (done: number, total: number) => void
}

/** Rejects with StoreRefused when there is no store, or one of a newer version. */
export async function verifyStore(url: string, options: VerifyOptions = {}): Promise<VerifyReport> {
  const view = await openView(url)
  const check = new Check(view, options)
  try {
    await check.run(url)
    return { engine: engineOf(url).name, ...check.report() }
  } finally {
    await view.close()
  }
}

class Check {
  readonly #view: StoreView
  readonly #options: VerifyOptions
  readonly #faults = new Faults()
  readonly #hash = createHash('sha256')
  #isComplete = true
  #plants = 0
  #done = 0
  #unchecked = 0

  constructor(view: StoreView, options: VerifyOptions) {
    this.#view = view
    this.#options = options
  }

  async run(url: string): Promise<void> {
    const hands = await this.#findHands(url)
    try {
      const integrity = hands.do('integrity').then((done) => this.#take(done, 'the whole file'))
      await Promise.all([integrity, this.#checkLog(hands)])
    } finally {
      await hands.close()
    }
  }

  async #findHands(url: string): Promise<Hands> {
    const head = await findHead(this.#view).catch(() => 0)
    if (head > threadedPlants) return new Threads(url)
    return {
      do: async (job) => {
        // SQLite is read without a pause, and a signal is to be heard nevertheless.
        await turn()
        return doJob(this.#view, job)
      },
      lanes: 1,
      close: async () => {},
    }
  }

  async #checkLog(hands: Hands): Promise<void> {
    const { plants, parts } = await this.#checkStructure()
    this.#plants = plants
    await this.#checkPages(hands, parts)
  }

  /** Of a damaged file not even that may be readable. */
  async #checkStructure(): Promise<Structure> {
    try {
      const structure = await checkStructure(this.#view)
      this.#faults.add(...structure.faults)
      return structure
    } catch (error) {
      this.#faults.add({ detail: `the database cannot be read: ${whyUnread(error)}` })
      this.#isComplete = false
      return { head: 0, plants: 0, parts: [], faults: [] }
    }
  }

  /** As many pages at once as keep all hands busy, and no more: each waits for its turn in the hash. */
  async #checkPages(hands: Hands, parts: Range[]): Promise<void> {
    const pages = splitPages(parts)
    let hashed: Promise<void> = Promise.resolve()
    const runLane = async () => {
      for (const page of pages) {
        this.#options.signal?.throwIfAborted()
        const [before, done] = [hashed, hands.do(page)]
        const turn = Promise.all([done, before]).then(([report]) => this.#take(report, nameOf(page)))
        // A lane that fails has the others fail at their next page.
        hashed = turn.catch(() => {})
        await turn
        this.#done += page.last - page.after
        this.#options.onProgress?.(this.#done, this.#plants)
      }
    }
    await Promise.all(Array.from({ length: hands.lanes }, runLane))
  }

  #take(done: Done, what: string): void {
    if ('failed' in done) {
      this.#faults.add({ detail: `${what} cannot be read: ${done.failed}` })
      this.#isComplete = false
      return
    }
    this.#faults.add(...done.faults)
    this.#unchecked += done.unchecked
    if (done.lines.length > 0) this.#hash.update(done.lines).update('\n')
  }

  report(): Omit<VerifyReport, 'engine'> {
    return {
      schemaVersion: this.#view.version,
      plants: this.#plants,
      unchecked: this.#unchecked,
      checksum: this.#isComplete ? this.#hash.digest('hex') : null,
      faultCount: this.#faults.count,
      faults: this.#faults.named,
    }
  }
}

function* splitPages(parts: Range[]): Generator<Range> {
  for (const { after, last } of parts)
    for (let position = after; position < last; position += pagePlants)
      yield { after: position, last: Math.min(position + pagePlants, last) }
}

function nameOf({ after, last }: Range): string {
  return `plants ${after + 1} to ${last}`
}
