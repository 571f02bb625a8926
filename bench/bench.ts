// What every scenario gets: the options, the processors, the load, a directory, and the way to say how far it is.
import { mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { startLoad } from './load/load.ts'
import type { Pins } from './machine.ts'
import type { Options } from './options.ts'
import { Progress } from './progress.ts'
import { Slices } from './slices.ts'

export const root = fileURLToPath(new URL('..', import.meta.url))

export type Bench = ReturnType<typeof createBench>

export function createBench(options: Options, pins: Pins) {
  // Beside the data of the service, so that it is the same disk.
  mkdirSync(join(root, 'data'), { recursive: true, mode: 0o700 })
  const directory = mkdtempSync(join(root, 'data', 'bench-'))
  const servers: { stop(): Promise<void> }[] = []
  const made = new Map<string, string>()
  let files = 0
  /** A path that nothing has yet. */
  const newFile = (name: string) => join(directory, `${files++}-${name}`)
  return {
    options,
    pins,
    progress: new Progress(),
    slices: new Slices(options.repeatMs.all),
    load: startLoad(pins.load),
    background: startLoad(pins.load, 19),
    newFile,

    /** The path of a file that is made when it is first asked for. */
    async once(name: string, make: (path: string) => Promise<void> | void): Promise<string> {
      const path = made.get(name) ?? newFile(name)
      if (!made.has(name)) await make(path)
      made.set(name, path)
      return path
    },

    /** Has a server stopped at the end of the scenario. */
    stopLater: (server: { stop(): Promise<void> }) => servers.push(server),

    /** Stops the servers of a scenario. */
    async stopServers(): Promise<void> {
      await Promise.all(servers.splice(0).map(({ stop }) => stop()))
    },

    /** Removes what was made on disk. */
    clean(): void {
      rmSync(directory, { recursive: true, force: true, maxRetries: 5, retryDelay: 50 })
    },
  }
}
