// The load generator, a process of its own: does the jobs that its parent sends, and answers each with its result.
import { generate } from './generate.ts'
import type { Job, Result } from './job.ts'
import { pull } from './pull.ts'

process.on('message', async ({ id, job }: { id: number; job: Job }) => {
  try {
    process.send?.({ id, result: await work(job) })
  } catch (error) {
    process.send?.({ id, error: (error as Error).message })
  }
})
process.on('disconnect', () => process.exit())

async function work(job: Job): Promise<Result> {
  if (job.kind === 'pull') return pull(job)
  if (job.kind === 'requests') return generate(job)
  const { runAutocannon } = await import('./autocannon.ts')
  return runAutocannon(job)
}
