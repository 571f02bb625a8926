// Describes the current commit of this clone.
import { execFileSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { join } from 'node:path'

const root = join(import.meta.dirname, '..')

/** Such as 0123456789ab, or 0123456789ab-dirty with uncommitted changes; undefined outside a clone. */
export function describeCommit(): string | undefined {
  // In a copy without a repository, git would find one in a parent directory.
  if (!existsSync(join(root, '.git'))) return undefined
  const args = ['describe', '--always', '--dirty', '--exclude=*', '--abbrev=12']
  return execFileSync('git', args, { cwd: root, encoding: 'utf8' }).trim()
}
