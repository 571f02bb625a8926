// Runs commands, one after another, in one process per test file, since starting a process takes longer than most commands.
// Tests of signals and services need a separate process: `spawnCli`.
import { once } from 'node:events'
import type { Socket } from 'node:net'
import type { Test } from 'tap'
import tap from 'tap'
import { type Ended, inherited, noteProcess, type Ran, root, spawnBare, spawnProgram } from './processes.ts'

/** A command for the process, which answers with the exit code, and writes `mark` at the end of each stream. */
export type CommandLine = { args: string[]; env: NodeJS.ProcessEnv; cwd: string; mark: string }

const mark = '\0'

let host: ReturnType<typeof start> | undefined
let last: Promise<unknown> = Promise.resolve()

/** Runs `plant-store ARGUMENTS` with nothing else in its environment. */
export function runCommand(args: string[], env: NodeJS.ProcessEnv = {}, cwd = process.cwd()): Promise<Ran> {
  const ran = last.then(() => runNext({ args, env, cwd, mark }))
  last = ran.catch(() => {})
  return ran
}

async function runNext(line: CommandLine): Promise<Ran> {
  host ??= start()
  const { child, channel, stdout, stderr } = host
  channel.ref()
  const outputs = [readToMark(stdout), readToMark(stderr)] as const
  child.send(line)
  // If a command ends its process, `close` has the exit code.
  const over = new AbortController()
  const either = ['message', 'close'].map((event) => once(child, event, { signal: over.signal }))
  const [code] = await Promise.race(either)
  for (const other of either) other.catch(() => {})
  over.abort()
  const [said, complained] = await Promise.all(outputs)
  channel.unref()
  return { code, stdout: said, stderr: complained }
}

/** Keeps the test file alive only while a command runs. */
function start() {
  const script = `${root}test/support/command-process.ts`
  const child = spawnBare(process.execPath, [script], {
    env: inherited(),
    stdio: ['ignore', 'pipe', 'pipe', 'ipc'],
  })
  noteProcess(child)
  child.once('exit', () => (host = undefined))
  child.unref()
  const [stdout, stderr] = [child.stdout, child.stderr] as [Socket, Socket]
  for (const stream of [stdout, stderr]) stream.setEncoding('utf8').unref()
  tap.teardown(async () => {
    if (!child.connected) return
    child.ref()
    child.disconnect()
    await once(child, 'exit')
  })
  return { child, stdout, stderr, channel: child.channel as NonNullable<typeof child.channel> }
}

function readToMark(stream: NodeJS.ReadableStream): Promise<string> {
  return new Promise((resolve) => {
    let text = ''
    const end = () => {
      stream.off('data', add).off('end', end)
      resolve(text)
    }
    const add = (chunk: string) => {
      text += chunk
      if (!text.includes(mark)) return
      text = text.replace(mark, '')
      end()
    }
    stream.on('data', add).once('end', end)
  })
}

export const cli = `${root}src/cli.ts`

/**
 * Starts `plant-store ARGUMENTS` with nothing else in its environment. `program`: the entry point of another
 * installation.
 */
export function spawnCli(
  t: Test,
  args: string[],
  env: NodeJS.ProcessEnv = {},
  { program = cli, ...options }: { program?: string; cwd?: string | undefined; input?: string } = {},
) {
  return spawnProgram(t, process.execPath, [program, ...args], {
    ...options,
    env: { ...inherited(), ...env },
  })
}

/** Runs a line of bash, in which `plant-store` is the command, to its end. */
export function runShell(t: Test, line: string, env: NodeJS.ProcessEnv = {}, cwd?: string): Promise<Ended> {
  const script = `plant-store() { '${process.execPath}' '${cli}' "$@"; }; ${line}`
  return spawnProgram(t, 'bash', ['--norc', '-c', script], { cwd, env: { ...inherited(), ...env } }).ended
}
