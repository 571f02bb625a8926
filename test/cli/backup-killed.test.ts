// Exports, backups and restores that are stopped at any moment: a file with the final name is complete.
import { createHash } from 'node:crypto'
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import tap, { before, type Test, test } from 'tap'
import { runCommand, spawnCli } from '../support/commands.ts'
import { fill, verify } from '../support/copies.ts'
import { createDirectory, sqlite } from '../support/engines.ts'
import { countRounds } from '../support/full.ts'
import { open } from '../support/stores.ts'

const rounds = countRounds(8, 3)
const together = 3
const lookMs = 2
/** The last rounds wait until the file has its final name. */
const lastPart = 1.3
const plants = 40_000

const hash = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex')

/** A command that makes the file `name` in a new directory. */
type Case = { args: (path: string) => string[]; url: (path: string) => string; name: string; bytes: number }

/**
 * Sends a signal to a command when its unfinished file reaches a fraction of its final size: from 0, as soon as it
 * exists, to 1.
 */
async function endAt(
  t: Test,
  directory: string,
  { args, url, name, bytes }: Case,
  signal: NodeJS.Signals,
  part: number,
) {
  const path = join(directory, name)
  const { child, ended } = spawnCli(t, args(path), { DATABASE_URL: url(path) })
  let over = false
  void ended.then(() => (over = true))
  const size = (file: string) => statSync(join(directory, file), { throwIfNoEntry: false })?.size ?? 0
  for (;;) {
    const partial = readdirSync(directory).find((file) => file.endsWith('.partial'))
    if (over || existsSync(path) || (partial && size(partial) >= part * bytes)) break
    await delay(lookMs)
  }
  child.kill(signal)
  return (await ended).signal
}

/** Sends a signal to a command in every round; `check` gets each file that has its final name. */
async function endAll(t: Test, what: Case, signal: NodeJS.Signals, check: (path: string) => unknown) {
  const counts = { whole: 0, partial: 0, clean: 0 }
  const root = createDirectory(t)
  const run = async (round: number) => {
    const directory = join(root, String(round))
    mkdirSync(directory)
    const end = await endAt(t, directory, what, signal, (lastPart * (round + 0.5)) / rounds)
    const files = readdirSync(directory)
    const others = files.filter((file) => file !== what.name && !file.includes('.partial'))
    if (others.length > 0) t.fail(`it left ${others}`)
    if (files.includes(what.name)) {
      await check(join(directory, what.name))
      counts.whole++
    } else if (signal === 'SIGINT') {
      t.strictSame({ end, files }, { end: 'SIGINT', files: [] }, `round ${round}`)
      counts.clean++
    } else counts.partial += files.length > 0 ? 1 : 0
    rmSync(directory, { recursive: true })
  }
  let next = 0
  const lane = async () => {
    while (next < rounds) await run(next++)
  }
  await Promise.all(Array.from({ length: together }, lane))
  const killed = counts.partial + counts.clean
  t.ok(killed > rounds / 4, `${JSON.stringify(counts)}: some runs were killed half-way`)
}

/** The store that all tests only read. */
let url: string
before(async () => {
  url = await sqlite.createDatabase(tap)
  await fill(await open(tap, url), plants)
})

test('export leaves a complete file or none, whenever it is stopped', async (t) => {
  const whole = join(createDirectory(t), 'a.ndjson.gz')
  t.match(await runCommand(['export', whole], { DATABASE_URL: url }), { code: 0 })
  const [bytes, sum] = [statSync(whole).size, hash(whole)]
  const export_: Case = { args: (path) => ['export', path], url: () => url, name: 'a.ndjson.gz', bytes }
  for (const signal of ['SIGKILL', 'SIGINT'] as const)
    await t.test(signal, (t) => endAll(t, export_, signal, (path) => t.equal(hash(path), sum)))
})

test('backup and restore leave a complete file or none, whenever they are stopped', async (t) => {
  const backup = join(createDirectory(t), 'b.db')
  t.match(await runCommand(['backup', backup], { DATABASE_URL: url }), { code: 0 })
  const { checksum } = await verify(`file:${backup}`)
  const check = async (path: string) => {
    t.match(await verify(`file:${path}`), { plants, checksum, faultCount: 0 })
  }
  const common = { name: 'a.db', bytes: statSync(backup).size }
  const backUp: Case = { ...common, args: (path) => ['backup', path], url: () => url }
  const restore: Case = { ...common, args: () => ['restore', backup], url: (path) => `file:${path}` }
  // Both copy in the same way.
  await t.test('backup, SIGKILL', (t) => endAll(t, backUp, 'SIGKILL', check))
  await t.test('restore, SIGINT', (t) => endAll(t, restore, 'SIGINT', check))
  await check(fileURLToPath(url))
  await check(backup)
})
