// The engines that every behaviour is tested on.
import { mkdtempSync } from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import type { Test } from 'tap'

export type Engine = {
  name: string
  /** The URL of a new, empty database, which goes when the test ends. */
  createDatabase(t: Test): Promise<string>
}

const sqlite: Engine = {
  name: 'SQLite',
  async createDatabase(t) {
    return pathToFileURL(join(createDirectory(t), 'plants.db')).href
  },
}

export const engines: Engine[] = [sqlite]

/** A new directory, which goes when the test ends. */
export function createDirectory(t: Test): string {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-test-'))
  t.teardown(() => rm(directory, { recursive: true, force: true }))
  return directory
}
