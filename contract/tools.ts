// The tools that this folder installs, and how they are started. Building and testing need none of them.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { fileURLToPath } from 'node:url'

/** This folder, as a path. */
export const folder = fileURLToPath(new URL('.', import.meta.url))

/** The input of a check: a running service, its token, the path of the document, and a directory for files. */
export type Subject = { url: string; token: string; file: string; directory: string }

/** The result of a check: a row of the table. `failures`: lines to print; `explained`: the number of known deviations. */
export type Outcome = { tool: string; version: string; cases: number; failures: string[]; explained: number }

/** Turns off telemetry, update checks and colours in all tools. */
const quiet = {
  REDOCLY_TELEMETRY: 'off',
  REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true',
  DO_NOT_TRACK: '1',
  NO_UPDATE_NOTIFIER: '1',
  NO_COLOR: '1',
}

/** The complete environment of a tool. */
export const environment = { PATH: process.env.PATH, HOME: process.env.HOME, ...quiet }

/** The time limit of a tool. */
const longestMs = 180_000

export type Ran = { code: number | null; stdout: string; stderr: string }

/** Runs a command with `input` on stdin. Resolves to its output and exit code, which need not be 0. */
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
    throw new Error(`${program} ended by ${child.signalCode}: it probably exceeded the time limit`)
  return { ...ran, code }
}

/** Starts a server and waits until its output matches `ready`. Resolves to the match and the process. */
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

/** Stops a server and waits until it has exited. */
export async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const gone = once(child, 'exit')
  child.kill('SIGTERM')
  await gone
}

const require = createRequire(import.meta.url)

/** Loads a CommonJS package of this folder, without types: the rest of the project never installs it. */
// biome-ignore lint/suspicious/noExplicitAny: see above.
export const load = (name: string): any => require(name)

/** The path of a tool's command. */
export const bin = (name: string) => `${folder}node_modules/.bin/${name}`

/** The installed version of a tool. */
export function versionOf(name: string): string {
  return JSON.parse(readFileSync(`${folder}node_modules/${name}/package.json`, 'utf8')).version
}
