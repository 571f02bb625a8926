// The commit that something is made from or measured at.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

/** Such as 0123456789ab, or 0123456789ab-dirty with changes that are not committed; undefined where there is no clone. */
export function describeCommit(): string | undefined {
  // Git would find the repository that a copy without one lies in.
  if (!existsSync(join(root, '.git'))) return undefined
  const args = ['describe', '--always', '--dirty', '--exclude=*', '--abbrev=12']
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
}
