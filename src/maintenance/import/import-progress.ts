// The progress of an import, kept in the store in the same transaction as each batch, so that it is always exact.
import { randomUUID } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { hostname } from 'node:os'
import { resolve } from 'node:path'
import { count } from '../../runtime/count.ts'
import { type Checkpoint, type Sql, StoreRefused } from '../../store/store.ts'
import type { ImportOptions } from './import-options.ts'
import { nameOf } from './input.ts'
import type { Records } from './records.ts'

/** `records`, `line`: read up to there; `rejects`: length of the file of rejected records, in bytes. */
export type Position = { records: number; line: number; rejects: number }

export const beginning: Position = { records: 0, line: 0, rejects: 0 }

/**
 * `host`, `pid`, `started`: of the process at work, whose id is used again later (proc_pid_stat(5)); `started` is null
 * where there is no /proc. `run`: the last import; `path`: of its input; `readAs`: options that change what a record is.
 */
type Own = { host: string; pid: number; started: string | null; run: string; path: string; readAs: string }

/** `hash`: of the first records that were consumed; `at`: in milliseconds since 1970. */
type Progress = Position & Own & { hash: string; at: number; done: boolean }

/** Progress with its row. */
type Found = { key: string; value: string; progress: Progress }

const prefix = 'import:'
/** A pattern; a key is one for itself alone, since hashes have no wildcard. */
const allKeys = `${prefix}%`
/** Waits for all batches before it, even for a COMMIT that a killed process has left under way at the server. */
const settle = 'UPDATE meta SET value = value WHERE key LIKE $1'
/** Number of finished imports that are remembered, so that resuming one of them adds nothing. */
const keptImports = 100

export class ImportProgress {
  readonly #sql: Sql
  readonly #name: string
  readonly #hashes: string[]
  readonly #own: Own
  #key: string
  /** The row that this run goes on with, or replaces. */
  #found: Found | undefined

  constructor(sql: Sql, path: string, { hashes, readAs }: Records) {
    this.#sql = sql
    this.#name = nameOf(path)
    this.#hashes = hashes
    this.#own = {
      host: hostname(),
      pid: process.pid,
      started: readStart(process.pid),
      run: randomUUID(),
      path: path === '-' ? path : resolve(path),
      readAs,
    }
    this.#key = prefix + hashes.at(-1)
  }

  /**
   * Finds where to start. Throws StoreRefused when an import of the input runs, or was interrupted and neither `resume`
   * nor `restart` is set.
   */
  async findStart({ resume, restart, say }: ImportOptions): Promise<Position> {
    const name = this.#name
    await this.#sql.execute(settle, [allKeys])
    const all = await this.#read(allKeys)
    const found = this.#choose(all)
    if (!found) {
      if (resume && all.some(({ progress }) => progress.path === this.#own.path && !progress.done))
        throw new StoreRefused(
          `${name} does not begin like the input whose import was cut short: it cannot be resumed`,
        )
      return beginning
    }
    const { records, line, rejects, done, readAs, pid } = found.progress
    if (!done && isAtWork(found.progress))
      throw new StoreRefused(`an import of ${name} is running, as process ${pid}: wait until it ends`)
    // A finished import whose input has grown keeps its own row, unless it is resumed.
    if (!done || resume || found.key === this.#key) {
      this.#key = found.key
      this.#found = found
    }
    const already = count(records, 'record')
    if (resume) {
      if (readAs !== this.#own.readAs)
        throw new StoreRefused(
          `${name}: the options differ from those of the import that was cut short: it cannot be resumed`,
        )
      say(`${name}: ${already} already imported`)
      return { records, line, rejects }
    }
    if (!done && records > 0 && !restart)
      throw new StoreRefused(
        `${name}: an import was cut short after ${already}; --resume goes on there, --restart begins anew and adds them again`,
      )
    return beginning
  }

  /** Chooses the most advanced progress of this input, or of an input that this one begins with. */
  #choose(all: Found[]): Found | undefined {
    const rank = ({ key, progress }: Found) =>
      key === this.#key ? Number.POSITIVE_INFINITY : this.#hashes.indexOf(progress.hash)
    return all.filter((row) => rank(row) > 0).sort((a, b) => rank(b) - rank(a))[0]
  }

  /** Claims the progress for this run. Throws StoreRefused when another import was faster. */
  async claim(start: Position): Promise<void> {
    const { key, value } = this.mark(start)
    await this.#sql.execute(
      `INSERT INTO meta (key, value) VALUES ($1, $2)
      ON CONFLICT (key) DO UPDATE SET value = excluded.value WHERE meta.value = $3`,
      [key, value, this.#found?.value ?? null],
    )
    await this.readOwn()
  }

  /** Makes the checkpoint of a batch that ends at the position. */
  mark(position: Position, done = false): Checkpoint {
    const hash = this.#hashes[Math.min(position.records, this.#hashes.length - 1)] as string
    const progress: Progress = { ...this.#own, ...position, hash, at: Date.now(), done }
    return { key: this.#key, value: JSON.stringify(progress) }
  }

  /** Reads the progress of this run. Throws StoreRefused when another run has taken over. */
  async readOwn(): Promise<Progress> {
    const [found] = await this.#read(this.#key)
    if (found?.progress.run !== this.#own.run)
      throw new StoreRefused(`another import of ${this.#name} has begun`)
    return found.progress
  }

  /** True when the batch of this run that ends at the position is in the log. */
  async holds({ records }: Position): Promise<boolean> {
    await this.#sql.execute(settle, [this.#key])
    return (await this.readOwn()).records === records
  }

  /** Marks the import as finished, and forgets the oldest finished ones. */
  async finish(position: Position): Promise<void> {
    const { key, value } = this.mark(position, true)
    await this.#sql.execute('UPDATE meta SET value = $1 WHERE key = $2', [value, key])
    const done = (await this.#read(allKeys)).filter(({ progress }) => progress.done)
    const oldest = done.sort((a, b) => b.progress.at - a.progress.at).slice(keptImports)
    for (const { key } of oldest) await this.#sql.execute('DELETE FROM meta WHERE key = $1', [key])
  }

  async #read(keys: string): Promise<Found[]> {
    const rows = await this.#sql.select('SELECT key, value FROM meta WHERE key LIKE $1', [keys])
    return rows.map(({ key, value }) => ({
      key: String(key),
      value: String(value),
      progress: JSON.parse(String(value)),
    }))
  }
}

/** True when the owner is another process of this machine that still runs. Other machines cannot be checked. */
function isAtWork({ host, pid, started }: Progress): boolean {
  return host === hostname() && pid !== process.pid && exists(pid) && started === readStart(pid)
}

function exists(pid: number): boolean {
  try {
    return process.kill(pid, 0)
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Reads field 22 of `pid (name) state …`, where the name may hold anything. */
function readStart(pid: number): string | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'latin1')
    return stat.slice(stat.lastIndexOf(')')).split(' ')[20] as string
    /* c8 ignore next 3: coverage is counted on Linux; elsewhere there is no /proc */
  } catch {
    return null
  }
}
