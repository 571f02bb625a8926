// A server under test: a process on a processor of its own, and what the operating system says of it.
import type { ChildProcess } from 'node:child_process'
import { spawnSync } from 'node:child_process'
import { closeSync, openSync, readFileSync, writeFileSync } from 'node:fs'
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
  readonly #child: ChildProcess

  private constructor(name: string, url: string, child: ChildProcess) {
    this.name = name
    this.url = url
    this.#child = child
  }

  /** Starts a server that prints `listening on URL`, and waits for that line. Throws when it does not come. */
  static async start({ name, command, env, cpus, logFile }: StartOptions): Promise<Server> {
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
    return new Server(name, url, child)
  }

  /** Microseconds of processor time so far, all threads together; undefined where /proc is not. */
  cpuUs(): number | undefined {
    const stat = this.#read('stat')
    if (!stat) return undefined
    // Fields 14 and 15 (proc_pid_stat(5)), counted behind the name in parentheses.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    return ((Number(fields[11]) + Number(fields[12])) / ticksPerSecond) * 1e6
  }

  /** MiB of resident memory now; undefined where /proc is not. */
  residentMiB(): number | undefined {
    return this.#status('VmRSS')
  }

  /** The most resident memory since resetPeak(). */
  peakMiB(): number | undefined {
    return this.#status('VmHWM')
  }

  /** proc_pid_clear_refs(5): 5 resets the peak. */
  resetPeak(): void {
    if (process.platform === 'linux') writeFileSync(`/proc/${this.#child.pid}/clear_refs`, '5')
  }

  stop(): Promise<void> {
    return stop(this.#child)
  }

  #status(name: string): number | undefined {
    const kib = new RegExp(`^${name}:\\s+(\\d+) kB`, 'm').exec(this.#read('status'))?.[1]
    return kib === undefined ? undefined : Number(kib) / 1024
  }

  #read(file: string): string {
    return process.platform === 'linux' ? readFileSync(`/proc/${this.#child.pid}/${file}`, 'utf8') : ''
  }
}

const ticksPerSecond =
  Number(spawnSync('getconf', ['CLK_TCK'], { encoding: 'utf8' }).stdout?.trim() || 100) || 100
