// Processes of tests: their environment, start, cleanup, and state from /proc (proc_pid_stat(5)).
import {
  type ChildProcess,
  type ChildProcessWithoutNullStreams,
  type SpawnOptions,
  spawn,
} from 'node:child_process'
import { once } from 'node:events'
import fs, { readdirSync, readFileSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import type { Socket } from 'node:net'
import { text } from 'node:stream/consumers'
import { fileURLToPath } from 'node:url'
import workers, { type WorkerOptions } from 'node:worker_threads'
import type { Test } from 'tap'

/** The directory of this clone, with a slash at its end. */
export const root = fileURLToPath(new URL('../../', import.meta.url))

const isCovered = process.env._TAPJS_PROCESSINFO_COVERAGE_ === '1'

/** The instruments of tap cost a thread one second of CPU time, so it loads them only for coverage. */
workers.Worker = class extends workers.Worker {
  constructor(file: string | URL, options?: WorkerOptions) {
    const { execArgv, env } = isCovered
      ? process
      : { execArgv: [], env: { ...process.env, NODE_OPTIONS: '' } }
    const wanted = process.env.TEST_NODE_OPTIONS?.split(' ') ?? []
    super(file, { env, execArgv: [...execArgv, ...wanted], ...options })
  }
}
syncBuiltinESMExports()

/**
 * The environment of a process that a test starts: PATH, the cache of compiled code, short time-outs if the test uses them,
 * and the instruments of tap for coverage.
 */
export function inherited(): NodeJS.ProcessEnv {
  const { PATH, NODE_COMPILE_CACHE, NODE_DISABLE_COMPILE_CACHE, TEST_NODE_OPTIONS } = process.env
  const instruments = process.execArgv.filter((option) => isCovered && /processinfo/.test(option))
  const tap = Object.entries(process.env).filter(([name]) => isCovered && name.startsWith('_TAPJS_'))
  const NODE_OPTIONS = [TEST_NODE_OPTIONS, ...instruments].filter(Boolean).join(' ')
  return { PATH, NODE_OPTIONS, NODE_COMPILE_CACHE, NODE_DISABLE_COMPILE_CACHE, ...Object.fromEntries(tap) }
}

/**
 * Starts a process without the instruments of tap, unless it measures coverage: they take a fifth of the time of a short
 * process. `env` restores the given options.
 */
export function spawnBare(
  command: string,
  args: string[],
  options: SpawnOptions & { env: NodeJS.ProcessEnv },
): ChildProcess {
  if (isCovered || process.platform === 'win32') return spawn(command, args, options)
  return spawn('env', [`NODE_OPTIONS=${options.env.NODE_OPTIONS ?? ''}`, command, ...args], options)
}

/** All descendants of a process. */
export function descendantsOf(pid: number): number[] {
  const parents = new Map(listProcesses().map((one) => [one, readStat(one)?.parent]))
  const found = [pid]
  for (const one of found) for (const [child, parent] of parents) if (parent === one) found.push(child)
  return found.slice(1)
}

/** Sends a signal to a process and all its descendants. */
export function signalAll(pid: number, signal: NodeJS.Signals): void {
  for (const one of [pid, ...descendantsOf(pid)]) {
    try {
      process.kill(one, signal)
    } catch {
      // It has already ended.
    }
  }
}

/** False if the process has ended, even if it was not reaped yet. */
export function isRunning(pid: number): boolean {
  return !['Z', 'X', undefined].includes(readStat(pid)?.state)
}

function listProcesses(): number[] {
  try {
    return readdirSync('/proc').map(Number).filter(Number.isInteger)
  } catch {
    return []
  }
}

/** `pid (name) state parent …`, where a name may contain anything. */
function readStat(pid: number): { state: string; parent: number } | undefined {
  try {
    const [, state = '', parent] = /.*\) (\S+) (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
    return { state, parent: Number(parent) }
  } catch {
    return undefined
  }
}

/** Calls `note` after each fsyncSync() of this thread, until the test ends. */
export function watchSyncs(t: Test, note: (descriptor: number) => void): void {
  const { fsyncSync } = fs
  const replace = (sync: typeof fsyncSync) => {
    fs.fsyncSync = sync
    syncBuiltinESMExports()
  }
  t.teardown(() => replace(fsyncSync))
  replace((descriptor) => {
    fsyncSync(descriptor)
    note(descriptor)
  })
}

let cleaner: ReturnType<typeof start> | undefined

function start() {
  const script = fileURLToPath(new URL('./cleaner.ts', import.meta.url))
  // Without the tests' instruments, and out of reach of signals to the tests' process group.
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const child = spawnBare(process.execPath, [script], {
    stdio: ['pipe', 'ignore', 'inherit'],
    detached: true,
    env: { PATH, NODE_COMPILE_CACHE },
  })
  child.unref()
  const stdin = child.stdin as Socket
  stdin.unref()
  return stdin
}

function tell(line: string): void {
  cleaner ??= start()
  cleaner.write(`${line}\n`)
}

/** Removes a directory when this process ends, if it still exists. */
export function noteDirectory(directory: string): void {
  tell(`+directory ${directory}`)
}

/** Kills a process when this one ends, unless it has ended. */
export function noteProcess(child: ChildProcess): void {
  tell(`+pid ${child.pid}`)
  child.once('exit', () => tell(`-pid ${child.pid}`))
}

/** The environment of a process that runs the module `code` first, in each of its threads. */
export function preload(code: string): NodeJS.ProcessEnv {
  return { NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(code)}` }
}

/** The longest wait for a line. */
const patienceMs = 60_000

/**
 * Starts a program, which is killed when the test ends. `input`: all of its standard input; null: that stays open.
 * `prints` and `logs` resolve to the first group of a pattern once it is on its standard output or in its log: a line may
 * arrive after the response that it describes. `listening`: resolves to the URL of a service once it is ready; rejects if
 * it ends first. `stop`: sends SIGTERM, and resolves when the program has ended.
 */
export function spawnProgram(
  t: Test,
  command: string,
  args: string[],
  { input, env = process.env, ...options }: SpawnOptions & { input?: string | null | undefined } = {},
) {
  const child = spawnBare(command, args, { ...options, env, stdio: 'pipe' }) as ChildProcessWithoutNullStreams
  noteProcess(child)
  t.teardown(() => child.kill('SIGKILL'))
  child.stdin.on('error', () => {})
  if (input !== null) child.stdin.end(input)
  const output = { stdout: '', stderr: '' }
  for (const name of ['stdout', 'stderr'] as const)
    child[name].setEncoding('utf8').on('data', (chunk) => (output[name] += chunk))
  const ended = once(child, 'close').then(([code, signal]): Ended => ({ code, signal, ...output }))
  const seen = async (name: 'stdout' | 'stderr', pattern: RegExp) => {
    for (const signal = AbortSignal.timeout(patienceMs); ; await once(child[name], 'data', { signal })) {
      const found = pattern.exec(output[name])
      if (found) return found[1] as string
    }
  }
  const early = ended.then(({ stdout, stderr }): never => {
    throw new Error(`it did not start: ${stdout}${stderr}`)
  })
  early.catch(() => {})
  const stop = () => {
    child.kill('SIGTERM')
    return ended
  }
  const prints = (pattern: RegExp) => seen('stdout', pattern)
  const logs = (pattern: RegExp) => seen('stderr', pattern)
  const listening = () => Promise.race([prints(/listening on (\S+)\n/), early])
  return { child, ended, stop, prints, logs, listening, output: () => output }
}

export type Ended = Ran & { signal: NodeJS.Signals | null }

export type Ran = { code: number | null; stdout: string; stderr: string }

/** The variables by which npm finds the registry. */
const registryVariables =
  /^(?:npm_config_(?:cache|cafile|globalconfig|https_proxy|noproxy|proxy|registry|userconfig)|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_\w+)$/i

/** Runs a program to its end. */
export async function run(
  command: string,
  args: string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; input?: string } = {},
): Promise<Ran> {
  const { input = '', cwd, env } = options
  // Without the tests' instruments.
  const { PATH, HOME } = process.env
  const toRegistry = Object.entries(process.env).filter(([name]) => registryVariables.test(name))
  const own = { ...Object.fromEntries(toRegistry), PATH, HOME, NODE_V8_COVERAGE: '', ...env }
  const child = spawn('env', ['-u', 'NODE_OPTIONS', command, ...args], { cwd, env: own })
  noteProcess(child)
  child.stdin.on('error', () => {}).end(input)
  const closed = once(child, 'close')
  const [stdout, stderr, [code]] = await Promise.all([text(child.stdout), text(child.stderr), closed])
  return { code, stdout, stderr }
}
