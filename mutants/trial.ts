// One run of a test file, or of some of its tests, up to the first failure.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Check } from './defect.ts'

/** `failed`: the title of the first test that failed. `trouble`: why the run says nothing. */
export type Verdict = { passed: true } | { passed: false; failed: string } | { trouble: string }

const running = new Set<ChildProcess>()

/** Ends all runs that are under way, with what they have started. */
export function endTrials(): void {
  for (const child of running) kill(child)
}

/** Runs in `directory`. A run that takes longer than `limitMs` says nothing. */
export async function runTests(
  { file, titles }: Check,
  directory: string,
  limitMs: number,
): Promise<Verdict> {
  // Into a file: what is written to a pipe is lost when a process ends itself before it is read.
  const report = join(directory, 'trial.tap')
  const output = openSync(report, 'w')
  const child = spawn(process.execPath, [file], {
    cwd: directory,
    env: {
      PATH: process.env.PATH,
      TMPDIR: process.env.TMPDIR,
      TAP_BAIL: '1',
      TEST_PATIENCE_MS: '10000',
      // Ours comes first: a test that took too long is not one that failed.
      TAP_TIMEOUT: String(Math.ceil((2 * limitMs) / 1000)),
      ...(titles && { TAP_GREP: titles.map(toPattern).join('\n') }),
    },
    stdio: ['ignore', output, output],
    // A group of its own, which can be ended as a whole.
    detached: true,
  })
  running.add(child)
  let late = false
  const timer = setTimeout(() => {
    late = true
    kill(child)
  }, limitMs)
  const [code] = await once(child, 'exit')
  clearTimeout(timer)
  running.delete(child)
  closeSync(output)
  if (late) return { trouble: `no end after ${Math.round(limitMs / 1000)} s` }
  return readVerdict(code, readFileSync(report, 'utf8'))
}

/** A failure without a failed test, for instance of a file that cannot be loaded, proves nothing of the tests. */
function readVerdict(code: number | null, text: string): Verdict {
  const lines = text.trim().split('\n')
  const first = lines.findIndex((line) => /^\s*(not ok|Bail out!) /.test(line))
  if (code === 0) return lines.some(isRun) ? { passed: true } : { trouble: 'no test has such a title' }
  if (first === -1) return { trouble: `exit code ${code}: ${lines.at(-1)}` }
  const title = lines.slice(0, first).findLast((line) => /^\s*# Subtest: /.test(line))
  return {
    passed: false,
    failed: (title ?? (lines[first] as string)).replace(/^.*?(# Subtest:|ok \d+ -|Bail out!) /, ''),
  }
}

/** A top-level test that was not skipped. */
function isRun(line: string): boolean {
  return /^ok \d+ - /.test(line) && !/# (skip|time=0ms)/i.test(line)
}

function kill({ pid }: ChildProcess): void {
  try {
    process.kill(-(pid as number), 'SIGKILL')
  } catch {
    // It has ended in the same moment.
  }
}

/** Titles are texts, and the filter takes regular expressions. */
function toPattern(title: string): string {
  return title.replace(/[.*+?^${}()|[\]\\/]/g, '\\$&')
}
