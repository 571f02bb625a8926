// A disk whose power can be cut: with the preloaded library unsynced-disk.c, processes keep an image of what they have
// synced next to each database.
import { spawnSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { createDirectory } from '../support/engines.ts'
import { skipWithout } from '../support/tools.ts'
import { until } from '../support/until.ts'

export const skip = process.platform === 'linux' ? skipWithout('cc') : 'only Linux preloads libraries'

const source = join(import.meta.dirname, 'unsynced-disk.c')
const pageBytes = 4096
const names = ['plants.db', 'plants.db-wal']

export class Disk {
  readonly #t: Test
  readonly #library: string
  /** The files that processes see, and their synced contents. */
  readonly #cache: string
  readonly #stored: string

  constructor(t: Test) {
    const directory = createDirectory(t)
    this.#t = t
    this.#library = join(directory, 'unsynced-disk.so')
    this.#cache = join(directory, 'cache')
    this.#stored = join(directory, 'stored')
    for (const name of [this.#cache, this.#stored]) mkdirSync(name)
    const args = ['-shared', '-fPIC', '-o', this.#library, source, '-ldl']
    const built = spawnSync('cc', args, { encoding: 'utf8' })
    if (built.status !== 0) throw new Error(built.stderr)
  }

  /** The environment of a process on this disk. `cutAt`: the operation at which the process is killed. */
  env(cutAt?: number): NodeJS.ProcessEnv {
    const cut = cutAt === undefined ? {} : { CUT_AT: String(cutAt) }
    return { LD_PRELOAD: this.#library, DISK: this.#stored, DATABASE_URL: `file:${this.path}`, ...cut }
  }

  get path(): string {
    return join(this.#cache, 'plants.db')
  }

  /** Makes the syncs of files with this ending fail or hang. */
  fault(kind: 'fail' | 'hang', ending: string): void {
    writeFileSync(join(this.#stored, 'fault'), `${kind} ${ending}`)
  }

  mend(): void {
    rmSync(join(this.#stored, 'fault'))
  }

  async hung(): Promise<void> {
    await until(() => existsSync(join(this.#stored, 'hung')))
  }

  /** The number of operations since `restart`. */
  get steps(): number {
    return Number(readFileSync(join(this.#stored, 'steps'), 'utf8'))
  }

  restart(): void {
    rmSync(join(this.#stored, 'steps'), { force: true })
  }

  /** Saves the disk; returns a function that restores it. */
  remember(): () => void {
    const kept = createDirectory(this.#t)
    const folders = [this.#cache, this.#stored]
    for (const [n, folder] of folders.entries()) cpSync(folder, join(kept, String(n)), { recursive: true })
    return () => {
      for (const [n, folder] of folders.entries()) {
        rmSync(folder, { recursive: true })
        cpSync(join(kept, String(n)), folder, { recursive: true })
      }
    }
  }

  /**
   * Cuts the power: returns the path of the surviving database. `isWritten`: decides for each page without a sync
   * whether the kernel had written it.
   */
  cutPower(isWritten: () => boolean = () => false): string {
    const directory = createDirectory(this.#t)
    for (const name of names) {
      const [cached, image] = [join(this.#cache, name), join(this.#stored, name)]
      if (!existsSync(image)) continue
      const dirty = readFileSync(`${image}.dirty`)
      const there = readFileSync(cached)
      const bytes = Buffer.alloc(Math.max(there.length, readFileSync(image).length))
      readFileSync(image).copy(bytes)
      for (const [page, isDirty] of dirty.entries())
        if (isDirty && isWritten())
          there.copy(bytes, page * pageBytes, page * pageBytes, (page + 1) * pageBytes)
      writeFileSync(join(directory, name), bytes)
    }
    return join(directory, 'plants.db')
  }
}
