// One piece of work that is measured.
import type { Bench } from '../bench.ts'
import type { Findings } from '../findings.ts'

export type Scenario = {
  /** As `--only` takes it. */
  name: string
  title: string
  /** Why it cannot be measured here, or undefined. */
  unable?(bench: Bench): Promise<string | undefined> | string | undefined
  run(bench: Bench): Promise<Findings>
}
