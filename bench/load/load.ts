// The bench's side of a load generator process.
import { fileURLToPath } from 'node:url'
import { readUsage, type Usage } from '../proc.ts'
import { spawnPinned, stop } from '../processes.ts'
import type { Job, Result } from './job.ts'

const script = fileURLToPath(new URL('./process.ts', import.meta.url))

/** How much longer than it should a job may take. */
const graceMs = 60_000

export class Load {
  readonly #child
  readonly #waiting = new Map<number, { resolve(result: Result): void; reject(error: Error): void }>()
  #jobs = 0

  /** `cpus` as taskset takes them; `nice` from 0 to 19: a background load makes way for the one that is timed. */
  constructor(cpus: string | undefined, nice = 0) {
    this.#child = spawnPinned([process.execPath, script], {
      cpus,
      stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
      nice,
    })
    this.#child.on('message', ({ id, result, error }: { id: number; result?: Result; error?: string }) => {
      const waiting = this.#waiting.get(id)
      this.#waiting.delete(id)
      if (result) waiting?.resolve(result)
      else waiting?.reject(new Error(error))
    })
    this.#child.on('exit', () => {
      for (const { reject } of this.#waiting.values()) reject(new Error('the load generator ended'))
    })
  }

  /** What the generator's process has used so far. */
  usage(): Usage {
    return readUsage(this.#child.pid as number)
  }

  /** Ends the generator's process. */
  end(): Promise<void> {
    return stop(this.#child)
  }

  run(job: Job): Promise<Result> {
    const id = this.#jobs++
    return new Promise((resolve, reject) => {
      const timer = setTimeout(
        () => {
          this.#waiting.delete(id)
          reject(new Error(`${job.url}${job.request.path} did not answer in time`))
        },
        (job.ms ?? 0) + graceMs,
      )
      this.#waiting.set(id, {
        resolve(result) {
          clearTimeout(timer)
          resolve(result)
        },
        reject(error) {
          clearTimeout(timer)
          reject(error)
        },
      })
      this.#child.send({ id, job })
    })
  }
}
