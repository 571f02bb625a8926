// The bench's side of a load generator process.
import { on } from 'node:events'
import { fileURLToPath } from 'node:url'
import { spawnPinned, stop } from '../processes.ts'
import type { Job, Result } from './job.ts'

export type Load = ReturnType<typeof startLoad>

const script = fileURLToPath(new URL('./generate.ts', import.meta.url))

/** How much longer than it should a job may take. */
const graceMs = 60_000

/** `cpus` as taskset takes them; `nice` from 0 to 19: a background load makes way for the one that is timed. */
export function startLoad(cpus: string | undefined, nice = 0) {
  const command = [process.execPath, script]
  const child = spawnPinned(command, { cpus, nice, stdio: ['ignore', 'inherit', 'inherit', 'ipc'] })
  let jobs = 0
  return {
    end: () => stop(child),

    /** `begun` is called when all connections are open. Throws when an answer is not the expected one, or none comes in time. */
    async run(job: Job, begun: () => void = () => {}): Promise<Result> {
      const id = jobs++
      const signal = AbortSignal.timeout(job.ms + graceMs)
      const answers = on(child, 'message', { signal, close: ['exit'] })
      child.send({ id, job })
      for await (const [answer] of answers) {
        if (answer.id !== id) continue
        if (answer.begun) begun()
        else if (answer.result) return answer.result
        else throw new Error(answer.error)
      }
      throw new Error('the load generator ended')
    },
  }
}
