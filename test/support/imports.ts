// Inputs to import, imports in this process, and what the log holds after them.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import pino from 'pino'
import type { Test } from 'tap'
import { type ImportOptions, type ImportResult, importPlants } from '../../src/import/import.ts'
import { openStore } from '../../src/store/open.ts'
import type { Store } from '../../src/store/store.ts'
import { createDirectory } from './engines.ts'
import { noteProcess } from './leftovers.ts'

export type Plant = { name: string; tag: string; id?: number }

export const fixture: Plant[] = JSON.parse(
  readFileSync(new URL('../fixtures/plants.json', import.meta.url), 'utf8'),
)

/** The same plants in each format. */
export const written: Record<string, (plants: Plant[]) => string> = {
  ndjson: (plants) => plants.map((plant) => `${JSON.stringify(plant)}\n`).join(''),
  json: (plants) => JSON.stringify(plants, null, 2),
  csv: (plants) => `name,tag\r\n${plants.map(({ name, tag }) => `${cell(name)},${cell(tag)}\r\n`).join('')}`,
}

function cell(text: string): string {
  return /[",\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}

/** Writes a file that goes when the test ends. Its name is `input`. */
export function writeInput(t: Test, bytes: string | Buffer): string {
  const path = join(createDirectory(t), 'input')
  writeFileSync(path, bytes)
  return path
}

export function open(url: string): Promise<Store> {
  return openStore(url, { logger: pino({ level: 'silent' }) })
}

export type Imported = {
  result: ImportResult | undefined
  error: Error | undefined
  /** What was said, with `input` for the path. */
  said: string[]
}

/** Imports a file into the database at a URL. */
export async function runImport(
  url: string,
  path: string,
  options: Partial<ImportOptions> = {},
): Promise<Imported> {
  const said: string[] = []
  const name = (text: string) => text.replaceAll(path, 'input')
  const all: ImportOptions = {
    path,
    signal: new AbortController().signal,
    openStore: () => open(url),
    say: (line) => said.push(name(line)),
    patienceMs: 0,
    ...options,
  }
  try {
    return { result: await importPlants(all), error: undefined, said }
  } catch (error) {
    const fault = error as Error
    fault.message = name(fault.message)
    return { result: undefined, error: fault, said }
  }
}

/** All plants in the log, in its order; `id` where there is one. */
export async function readPlants(url: string): Promise<Plant[]> {
  const store = await open(url)
  try {
    const rows = await store.sql.select('SELECT item, id FROM plants ORDER BY position')
    return rows.map(({ item, id }) => ({
      ...JSON.parse(String(item)),
      ...(id !== null && { id: Number(id) }),
    }))
  } finally {
    await store.close()
  }
}

const cli = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))

/** Runs `plant-store import -` with this on its stdin. */
export async function pipeImport(t: Test, url: string, input: string, ...args: string[]) {
  const { PATH, NODE_V8_COVERAGE } = process.env
  const child = spawn(process.execPath, [cli, 'import', '-', ...args], {
    env: { PATH, NODE_V8_COVERAGE, DATABASE_URL: url },
  })
  noteProcess(child)
  t.teardown(() => child.kill('SIGKILL'))
  child.stdin.end(input)
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ])
  return { code, stdout, stderr }
}
