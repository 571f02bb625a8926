// import: killed or interrupted at any moment. With --resume it goes on, and in the end every plant is there once, in
// the order of the input: also plants without an id.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { type Engine, engines } from '../support/engines.ts'
import { countRounds, makeRandom, tellSeed } from '../support/full.ts'
import { open, readPlants, runImport, startProgram, writeInput } from './imports.ts'

const allRounds = countRounds(5, 2)
/** What is left after the last round keeps it from coming to its end too early. */
const plantsPerRound = 1000
const names = Array.from({ length: (allRounds + 3) * plantsPerRound }, (_, n) => `plant ${n}`)
const lines = names.map((name) => `{"name":"${name}","tag":""}`)

/** By so much of its beginning an input is known again. */
const headLines = 3000
/** So many plants are still to come when the signal does; the input does not end. */
const ahead = 1500

/** Runs the command until about `head` plants are there, and some moments more; then it gets a signal. */
async function cutShort(
  t: Test,
  url: string,
  { head, signal, moreMs }: { head: number; signal: NodeJS.Signals; moreMs: number },
) {
  const { child, ended } = startProgram(t, ['import', '-', '--resume', '--quiet', '--batch', '50'], url)
  child.stdin.write(`${lines.slice(0, Math.max(headLines, head + ahead)).join('\n')}\n`)
  const store = await open(url)
  let over = false
  void ended.then(() => (over = true))
  while (!over && (await store.log.head()).position < head) await sleep(5)
  await sleep(moreMs)
  child.kill(signal)
  await store.close()
  return ended
}

/** `check`: what one round must have come to. */
async function cutShortOften(
  t: Test,
  engine: Engine,
  signal: NodeJS.Signals,
  check: (t: Test, end: Awaited<ReturnType<typeof cutShort>>) => void,
): Promise<void> {
  // An import that is interrupted once is that of import-again.test.ts, too.
  const rounds = signal === 'SIGKILL' ? allRounds : countRounds(5, 1)
  tellSeed(t)
  const random = makeRandom()
  const url = await engine.createDatabase(t)
  // The database is there before the first round, so that it can be watched.
  await (await open(url)).close()
  const path = writeInput(t, lines.join('\n'))
  for (let round = 0; round < rounds; round++) {
    // A signal may come before the command is there to hear it; kill -9 may come then, too.
    const least = signal === 'SIGKILL' ? 0 : (await readPlants(url)).length + 1
    const head = Math.max(least, Math.floor((round + random()) * plantsPerRound))
    check(t, await cutShort(t, url, { head, signal, moreMs: random() * 20 }))
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

test('an import that is cut short again and again has added every plant once', async (t) => {
  t.jobs = 4
  for (const engine of engines) {
    void t.test(`${engine.name}: by kill -9`, { buffered: true }, (t) =>
      cutShortOften(t, engine, 'SIGKILL', (t, end) => {
        t.match(end, { signal: 'SIGKILL' })
      }),
    )
    void t.test(`${engine.name}: by SIGINT`, { buffered: true }, (t) =>
      cutShortOften(t, engine, 'SIGINT', (t, end) => {
        t.match(end, { code: 130, stdout: /^[1-9][\d,]* added, / })
        t.match(
          end.stderr,
          /plant-store: interrupted at record [\d,]+; run the same command with --resume to go on\n$/,
        )
      }),
    )
  }
})
