// The tools that this folder installs for itself, and how each is started: nothing of them is needed to build or test.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/** This folder, as a path. */
export const folder = fileURLToPath(new URL('.', import.meta.url))

/** What every check is given: a service that runs, its token, the document in words and where it is. */
export type Subject = { url: string; token: string; file: string; directory: string }

/** A check's row of the table. `failures` are lines to print; `explained` are deviations whose reason is written down. */
export type Outcome = { tool: string; version: string; cases: number; failures: string[]; explained: number }

/** None of the tools may call home, look for a newer version of itself, or colour what is read by a program. */
const quiet = {
  REDOCLY_TELEMETRY: 'off',
  REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
  DO_NOT_TRACK: '1',
  NO_UPDATE_NOTIFIER: '1',
  NO_COLOR: '1',
}

/** What a tool inherits: the way to programs, a home, and no more. */
export const environment = { PATH: process.env.PATH, HOME: process.env.HOME, ...quiet }

/** A tool that takes longer than this has lost its way. */
const longestMs = 180_000

export type Ran = { code: number | null; stdout: string; stderr: string }

/** Runs a command to its end with `input` on stdin, and returns what it printed; it may exit with any code. */
export async function run(
  command: [string, ...string[]],
  { cwd = folder, env = {}, input = '' }: { cwd?: string; env?: NodeJS.ProcessEnv; input?: string } = {},
): Promise<Ran> {
  const [program, ...args] = command
  const child = spawn(program, args, { cwd, env: { ...environment, ...env } })
  child.stdin.on('error', () => {}).end(input)
  const ran: Ran = { code: null, stdout: '', stderr: '' }
  child.stdout.setEncoding('utf8').on('data', (chunk) => (ran.stdout += chunk))
  child.stderr.setEncoding('utf8').on('data', (chunk) => (ran.stderr += chunk))
  const watch = setTimeout(() => child.kill('SIGKILL'), longestMs)
  const [code] = await once(child, 'close').finally(() => clearTimeout(watch))
  if (child.signalCode)
    throw new Error(`${program} ended by ${child.signalCode}; no command here takes so long`)
  return { ...ran, code }
}

/** Starts a server and waits for the line that tells that it is ready; what that line matches is returned. */
export async function startServer(
  command: [string, ...string[]],
  { ready, env = {}, cwd = folder }: { ready: RegExp; env?: NodeJS.ProcessEnv; cwd?: string },
): Promise<{ match: RegExpExecArray; child: ChildProcess }> {
  const [program, ...args] = command
  const child = spawn(program, args, {
    cwd,
    env: { ...environment, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  let printed = ''
  const match = await new Promise<RegExpExecArray>((resolve, reject) => {
    const read = (chunk: Buffer) => {
      printed += chunk
      const found = ready.exec(printed)
      if (found) resolve(found)
    }
    child.stdout.on('data', read)
    child.stderr.on('data', read)
    child.once('error', reject)
    child.once('close', () => reject(new Error(`${program} did not start: ${printed}`)))
  })
  return { match, child }
}

/** Ends a server and waits until it is gone. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  await gone
}

const require = createRequire(import.meta.url)

/** A package of this folder, as CommonJS. Its types are not known to the rest of the project, which never has it. */
// biome-ignore lint/suspicious/noExplicitAny: see above.
export const load = (name: string): any => require(name)

/** The path of a tool's command. */
export const bin = (name: string) => `${folder}node_modules/.bin/${name}`

/** The version of a tool that is installed. */
export function versionOf(name: string): string {
  return JSON.parse(readFileSync(`${folder}node_modules/${name}/package.json`, 'utf8')).version
}
