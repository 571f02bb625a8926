// Proves the suite: puts one deliberate defect after the other into a copy of the tree, and expects a test to fail.
import { availableParallelism } from 'node:os'
import { fileURLToPath } from 'node:url'
import { parseArgs } from 'node:util'
import { readTurn } from '../test/run/turn.ts'
import type { Check, Defect } from './defect.ts'
import { defects } from './defects.ts'
import { Tree } from './tree.ts'
import { endTrials, runTests, type Verdict } from './trial.ts'

const root = fileURLToPath(new URL('..', import.meta.url))
const turns = 8
const limitMs = 180_000

const help = `npm run mutate -- [options]
  --only 3,17   these defects alone
  --turn 2      an eighth of them; "auto" takes the one of the commit
  --jobs 2      how many at once
  --list        say what there is`

const { values: options } = parseArgs({
  options: {
    only: { type: 'string' },
    turn: { type: 'string' },
    jobs: { type: 'string', default: String(Math.min(2, availableParallelism())) },
    list: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
})

type Numbered = Defect & { number: number }

function choose(): Numbered[] {
  const all = defects.map((defect, index): Numbered => ({ ...defect, number: index + 1 }))
  const only = options.only?.split(',').map(Number)
  const turn = options.turn === undefined ? undefined : readTurn(options.turn, turns)
  return all.filter(
    ({ number }) =>
      (only === undefined || only.includes(number)) && (turn === undefined || number % turns === turn),
  )
}

/** Does `work` for all items, in one tree for each job. */
async function share<T>(
  items: T[],
  trees: Tree[],
  work: (item: T, tree: Tree) => Promise<void>,
): Promise<void> {
  const rest = [...items]
  await Promise.all(
    trees.map(async (tree) => {
      for (let item = rest.shift(); item !== undefined; item = rest.shift()) await work(item, tree)
    }),
  )
}

/** Each check that is used has to pass as things are: otherwise its failure says nothing. Returns those that do not. */
async function findFaults(chosen: Numbered[], trees: Tree[]): Promise<string[]> {
  const checks = new Map<string, Check>()
  for (const check of chosen.flatMap((defect) => defect.checks)) checks.set(describe(check), check)
  const faults: string[] = []
  await share([...checks.values()], trees, async (check, tree) => {
    const verdict = await runTests(check, tree.directory, limitMs)
    if (!('passed' in verdict && verdict.passed))
      faults.push(`${describe(check)}: ${JSON.stringify(verdict)}`)
  })
  return faults
}

async function tryDefect(defect: Numbered, tree: Tree): Promise<boolean> {
  const startMs = performance.now()
  const { verdict, check } = await tree.with(defect, async () => {
    let last: { verdict: Verdict; check: Check } | undefined
    for (const check of defect.checks) {
      last = { verdict: await runTests(check, tree.directory, limitMs), check }
      if (!('passed' in last.verdict && last.verdict.passed)) break
    }
    return last as { verdict: Verdict; check: Check }
  })
  const isKilled = 'failed' in verdict
  const seconds = ((performance.now() - startMs) / 1000).toFixed(1).padStart(5)
  const word = isKilled ? 'killed  ' : 'trouble' in verdict ? 'UNCLEAR ' : 'SURVIVED'
  const told = isKilled ? verdict.failed : 'trouble' in verdict ? verdict.trouble : 'nothing failed'
  console.log(`${String(defect.number).padStart(2)} ${word} ${seconds} s  ${defect.breaks}`)
  console.log(`${' '.repeat(21)}${defect.file} · ${check.file}: ${told}`)
  return isKilled
}

function describe({ file, titles = [] }: Check): string {
  return [file, ...titles].join(' › ')
}

async function run(chosen: Numbered[], trees: Tree[]): Promise<boolean> {
  const startMs = performance.now()
  const faults = await findFaults(chosen, trees)
  for (const fault of faults) console.log(`without any defect: ${fault}`)
  if (faults.length > 0) return false
  console.log(`the tests pass without a defect: ${((performance.now() - startMs) / 1000).toFixed(0)} s`)
  let killed = 0
  await share(chosen, trees, async (defect, tree) => {
    if (await tryDefect(defect, tree)) killed++
  })
  const seconds = ((performance.now() - startMs) / 1000).toFixed(0)
  console.log(`${killed} of ${chosen.length} defects are seen, in ${seconds} s`)
  return killed === chosen.length && killed > 0
}

const chosen = choose()
if (options.help) console.log(help)
else if (options.list)
  for (const { number, file, breaks } of chosen) console.log(`${number}  ${file}: ${breaks}`)
else {
  const trees = Array.from({ length: Number(options.jobs) }, () => new Tree(root))
  const clean = () => {
    endTrials()
    for (const tree of trees) tree.remove()
  }
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    process.once(signal, () => {
      clean()
      process.exit(130)
    })
  try {
    process.exitCode = (await run(chosen, trees)) ? 0 : 1
  } finally {
    clean()
  }
}
