// What every scenario gets: the options, the processors, the load, a directory, and the way to say how far it is.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { Load } from './load/load.ts'
import type { Pins } from './machine.ts'
import type { Options } from './options.ts'
import type { Progress } from './progress.ts'
import type { Server } from './server.ts'
import { Slices } from './slices.ts'

export const root = fileURLToPath(new URL('..', import.meta.url))

export class Bench {
  readonly options: Options
  readonly pins: Pins
  readonly progress: Progress
  readonly load: Load
  /** Load that is there but not timed. */
  readonly background: Load
  readonly slices: Slices
  readonly directory: string
  /** The URLs of stores that are copied when one is needed, by their number of plants. */
  readonly filledStores = new Map<number, string>()
  readonly #servers: Server[] = []
  #files = 0

  constructor(options: Options, pins: Pins, progress: Progress) {
    this.options = options
    this.pins = pins
    this.progress = progress
    this.load = new Load(pins.load)
    this.slices = new Slices(options.repeatMs)
    this.background = new Load(pins.load, 19)
    // Beside the data of the service, so that it is the same disk.
    mkdirSync(join(root, 'data'), { recursive: true, mode: 0o700 })
    this.directory = mkdtempSync(join(root, 'data', 'bench-'))
  }

  /** A path that nothing has yet. */
  newFile(name: string): string {
    return join(this.directory, `${this.#files++}-${name}`)
  }

  /** Has a server stopped at the end of the scenario. */
  use(server: Server): Server {
    this.#servers.push(server)
    return server
  }

  /** Stops the servers of a scenario. */
  async stopServers(): Promise<void> {
    await Promise.all(this.#servers.splice(0).map((server) => server.stop()))
  }

  /** Removes what was made on disk. */
  clean(): void {
    rmSync(this.directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
  }
}
