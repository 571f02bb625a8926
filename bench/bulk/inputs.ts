// Files and stores with so many plants, made once for all rounds.
import { closeSync, openSync, writeSync } from 'node:fs'
import type { Bench } from '../bench.ts'
import { makePlant } from '../load/plants.ts'
import { makeStore } from '../stores.ts'

export type Format = 'ndjson' | 'csv'

const linesAtOnce = 10_000

const formats: Record<Format, { head: string; line(plant: { name: string; tag: string }): string }> = {
  ndjson: { head: '', line: (plant) => `${JSON.stringify(plant)}\n` },
  csv: { head: 'name,tag\n', line: ({ name, tag }) => `${quote(name)},${quote(tag)}\n` },
}

export class Inputs {
  readonly #bench: Bench
  readonly #files = new Map<string, string>()
  readonly #stores = new Map<number, Promise<string>>()

  constructor(bench: Bench) {
    this.#bench = bench
  }

  /** The path of a file. */
  file(format: Format, plants: number): string {
    const key = `${plants}.${format}`
    const path = this.#files.get(key) ?? this.#bench.newFile(key)
    if (!this.#files.has(key)) writePlants(path, format, plants)
    this.#files.set(key, path)
    return path
  }

  /** The URL of a SQLite store that nobody else has open. */
  store(plants: number): Promise<string> {
    const url = this.#stores.get(plants) ?? makeStore(this.#bench, plants)
    this.#stores.set(plants, url)
    return url
  }
}

function writePlants(path: string, format: Format, plants: number): void {
  const { head, line } = formats[format]
  const file = openSync(path, 'w')
  writeSync(file, head)
  for (let from = 0; from < plants; from += linesAtOnce) {
    const length = Math.min(linesAtOnce, plants - from)
    writeSync(file, Array.from({ length }, (_, n) => line(makePlant(from + n))).join(''))
  }
  closeSync(file)
}

function quote(text: string): string {
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text
}
