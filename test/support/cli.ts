// The command line in a process of its own, for tests of signals, pipes and kills; others use `runCommand`.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { noteProcess } from './leftovers.ts'
import { inherited } from './processes.ts'

export const cli = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))

export type Ended = { code: number | null; signal: NodeJS.Signals | null; stdout: string; stderr: string }

/** Starts `plant-store ARGUMENTS` with nothing else in its environment. It is killed when the test ends. */
export function startCli(t: Test, args: string[], env: NodeJS.ProcessEnv = {}) {
  return watch(t, spawn(process.execPath, [cli, ...args], { env: { ...inherited(), ...env } }))
}

/** Runs a line of bash, in which `plant-store` is the command, to its end. */
export function runShell(t: Test, line: string, env: NodeJS.ProcessEnv = {}, cwd?: string): Promise<Ended> {
  const script = `plant-store() { '${process.execPath}' '${cli}' "$@"; }; ${line}`
  const child = spawn('bash', ['--norc', '-c', script], { cwd, env: { ...inherited(), ...env } })
  child.stdin.end()
  return watch(t, child).ended
}

function watch<T extends ChildProcess>(t: Test, child: T): { child: T; ended: Promise<Ended> } {
  noteProcess(child)
  t.teardown(() => child.kill('SIGKILL'))
  const { stdout, stderr } = child
  if (!stdout || !stderr) throw new Error('it has no pipes')
  const ended = Promise.all([text(stdout), text(stderr), once(child, 'close')]).then(
    ([stdout, stderr, [code, signal]]) => ({ code, signal, stdout, stderr }),
  )
  return { child, ended }
}
