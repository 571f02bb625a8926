// Runs one test file in a process of its own, and reads what it says (the Test Anything Protocol, testanything.org).
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { dirname } from 'node:path'
import { noteProcess } from '../support/leftovers.ts'

/** `failures`: what to show of a file that did not pass; empty when it did. `skipped`: why, once for each reason. */
export type Result = {
  file: string
  passed: number
  failed: number
  skipped: string[]
  seconds: number
  failures: string
}

/** For a quick file the same as in .taprc, for runs by tap itself. */
const [limitSeconds, slowSeconds] = [300, 1800]
const compiled = '.tap/compiled'
const watch = `--import=${import.meta.resolve('./end-when-done.ts')}`

/** What a test file, and what it starts, inherits. Of code that was compiled before nobody knows what was covered. */
function environment(env: NodeJS.ProcessEnv, seconds: number): NodeJS.ProcessEnv {
  const kept = env.NODE_V8_COVERAGE ? {} : { NODE_COMPILE_CACHE: `${process.cwd()}/${compiled}` }
  return { ...process.env, ...kept, TAP_TIMEOUT: String(seconds), ...env }
}

/**
 * Resolves when the file has ended, or was ended for taking too long. Its output is kept in .tap/results. `node`: an
 * emulated one takes as long as what is slow.
 */
export async function runFile(
  file: string,
  env: NodeJS.ProcessEnv,
  node = process.execPath,
): Promise<Result> {
  const isSlow = file.endsWith('.slow.ts') || node !== process.execPath
  const seconds = isSlow ? slowSeconds : limitSeconds
  const startMs = performance.now()
  const log = `.tap/results/${file}.tap`
  mkdirSync(dirname(log), { recursive: true })
  // Into a file: what is written to a pipe is lost when a process ends itself before it is read.
  const output = openSync(log, 'w')
  const child = spawn(node, [watch, file], {
    stdio: ['ignore', output, output],
    env: environment(env, seconds),
  })
  noteProcess(child)
  const timer = setTimeout(() => child.kill('SIGKILL'), (seconds + 10) * 1000)
  const [code, signal] = await once(child, 'exit')
  clearTimeout(timer)
  closeSync(output)
  const lines = readFileSync(log, 'utf8').split('\n')
  const counts = count(lines)
  // A file that ran no test has failed, unless it says why.
  const isGood = code === 0 && counts.failed === 0 && counts.passed + counts.skipped.length > 0
  const failures = isGood
    ? ''
    : `${findFailures(lines)}\n       exit code ${code ?? signal}, the whole output: ${log}`
  return { file, ...counts, seconds: (performance.now() - startMs) / 1000, failures }
}

/** Every assertion is counted where it stands: a subtest's own line repeats what is in it. */
function count(lines: string[]): Pick<Result, 'passed' | 'failed' | 'skipped'> {
  const last = lines.findLast((line) => line.startsWith('# { total:')) ?? ''
  const number = (name: string) => Number(new RegExp(`${name}: (\\d+)`).exec(last)?.[1] ?? 0)
  const skipped = lines.flatMap((line) => /^\s*ok .*# SKIP ?(.*)$/i.exec(line)?.[1] ?? [])
  return { passed: number('pass'), failed: number('fail'), skipped: [...new Set(skipped)] }
}

const lastLines = 40

/** Each failed assertion with what is said of it; for a file that broke off, its last lines. */
function findFailures(lines: string[]): string {
  const shown: string[] = []
  let isShown = false
  for (const line of lines) {
    if (/^\s*not ok /.test(line)) isShown = true
    else if (/^\s*(ok |# Subtest|\d+\.\.\d+|# \{ total)/.test(line)) isShown = false
    if (isShown) shown.push(line)
    if (/^\s*\.\.\.$/.test(line)) isShown = false
  }
  return (shown.length > 0 ? shown : lines.slice(-lastLines)).join('\n')
}
