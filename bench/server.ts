// A server under test: a process on a processor of its own, and what the operating system says of it.
import type { ChildProcess } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { countListeners, readMiB, readUsage, type Usage } from './proc.ts'
import { spawnPinned, stop } from './processes.ts'

export type StartOptions = {
  name: string
  command: string[]
  env: NodeJS.ProcessEnv
  cpus: string | undefined
  /** The file that takes its standard error: the log. */
  logFile: string
}

const startMs = 30_000

export class Server {
  readonly name: string
  readonly url: string
  readonly logFile: string
  /** How many requests it has answered to the load generator. */
  answers = 0
  readonly #child: ChildProcess

  private constructor({ name, logFile }: StartOptions, url: string, child: ChildProcess) {
    this.name = name
    this.logFile = logFile
    this.url = url
    this.#child = child
  }

  /** Starts a server that prints `listening on URL`, and waits for that line. Throws when it does not come. */
  static async start(options: StartOptions): Promise<Server> {
    const { name, command, env, cpus, logFile } = options
    const log = openSync(logFile, 'a')
    const child = spawnPinned(command, {
      cpus,
      env: { PATH: process.env.PATH, PORT: '0', ...env },
      stdio: ['ignore', 'pipe', log],
    })
    closeSync(log)
    const url = await new Promise<string>((resolve, reject) => {
      const fail = () =>
        reject(new Error(`${name} did not start:\n${readFileSync(logFile, 'utf8').slice(-2000)}`))
      const timer = setTimeout(fail, startMs)
      child.once('error', fail)
      child.once('exit', fail)
      let output = ''
      child.stdout?.on('data', (chunk) => {
        output += chunk
        const ready = /listening on (\S+)/.exec(output)
        if (!ready) return
        clearTimeout(timer)
        resolve(ready[1] as string)
      })
    })
    return new Server(options, url, child)
  }

  /** What all its threads together have used so far. */
  usage(): Usage {
    return readUsage(this.#pid)
  }

  /** How many sockets share its port; 0 where /proc is not. */
  countListeners(): number {
    return countListeners(Number(new URL(this.url).port))
  }

  /** MiB of resident memory now; undefined where /proc is not. */
  residentMiB(): number | undefined {
    return readMiB(this.#pid, 'VmRSS')
  }

  /** The most resident memory since resetPeak(). */
  peakMiB(): number | undefined {
    return readMiB(this.#pid, 'VmHWM')
  }

  /** proc_pid_clear_refs(5): 5 resets the peak. */
  resetPeak(): void {
    if (process.platform === 'linux') writeFileSync(`/proc/${this.#pid}/clear_refs`, '5')
  }

  stop(): Promise<void> {
    return stop(this.#child)
  }

  get #pid(): number {
    return this.#child.pid as number
  }
}
