// import: killed or interrupted at any moment. With --resume it goes on, and in the end every plant is there once, in
// the order of the input: also plants without an id.
import { setImmediate as turn } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { type Engine, engines } from './support/engines.ts'
import { open, readPlants, runImport, writeInput } from './support/imports.ts'
import { spawnCli } from './support/service.ts'

const rounds = 10
/** What is left after the last round keeps it from coming to its end too early. */
const plantsPerRound = 2000
const names = Array.from({ length: (rounds + 3) * plantsPerRound }, (_, n) => `plant ${n}`)
const ndjson = names.map((name) => `{"name":"${name}","tag":""}\n`).join('')

/** Runs the command until about `head` plants are there, and some moments more; then it gets a signal. */
async function cutShort(
  t: Test,
  url: string,
  path: string,
  { head, signal }: { head: number; signal: NodeJS.Signals },
) {
  const args = ['import', path, '--resume', '--quiet', '--batch', '50']
  const { child, ended, output } = spawnCli(t, args, { DATABASE_URL: url })
  const store = await open(url)
  let over = false
  void ended.then(() => (over = true))
  while (!over && (await store.log.head()).position < head) await turn()
  for (let turns = Math.random() * 50; turns > 0; turns--) await turn()
  child.kill(signal)
  const end = await ended
  await store.close()
  return { ...end, ...output() }
}

/** `check`: what one round must have come to. */
async function cutShortOften(
  t: Test,
  engine: Engine,
  signal: NodeJS.Signals,
  check: (t: Test, end: Awaited<ReturnType<typeof cutShort>>) => void,
): Promise<void> {
  const url = await engine.createDatabase(t)
  // The database is there before the first round, so that it can be watched.
  await (await open(url)).close()
  const path = writeInput(t, ndjson)
  for (let round = 0; round < rounds; round++) {
    // A signal may come before the command is there to hear it; kill -9 may come then, too.
    const least = signal === 'SIGKILL' ? 0 : (await readPlants(url)).length + 1
    const head = Math.max(least, Math.floor((round + Math.random()) * plantsPerRound))
    check(t, await cutShort(t, url, path, { head, signal }))
  }
  const held = (await readPlants(url)).length
  t.ok(held < names.length, `${held} plants before the last run`)
  const { result, error } = await runImport(url, path, { resume: true })
  t.error(error)
  t.match(result, { added: names.length - held, records: names.length, rejected: 0 })
  t.strictSame(
    (await readPlants(url)).map(({ name }) => name),
    names,
  )
  t.match((await runImport(url, path, { resume: true })).result, { added: 0, skipped: names.length })
}

test('an import that is cut short ten times has added every plant once', async (t) => {
  t.jobs = 4
  for (const engine of engines) {
    void t.test(`${engine.name}: by kill -9`, { buffered: true }, (t) =>
      cutShortOften(t, engine, 'SIGKILL', (t, end) => {
        t.match(end, { signal: 'SIGKILL' })
      }),
    )
    void t.test(`${engine.name}: by SIGINT`, { buffered: true }, (t) =>
      cutShortOften(t, engine, 'SIGINT', (t, end) => {
        t.match(end, { code: 130, stdout: '' })
        t.match(
          end.stderr,
          /plant-store: interrupted at record [\d,]+; run the same command with --resume to go on\n$/,
        )
      }),
    )
  }
})
