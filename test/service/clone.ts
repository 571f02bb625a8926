// Copies of this clone for tests that write into one, because test files run at the same time.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { root } from '../support/processes.ts'

/** The files of the package. */
const names = [
  ...['bin', 'client', 'deploy', 'docs', 'examples', 'package', 'schemas', 'src'],
  ...['CHANGELOG.md', 'LICENSE', 'NOTICE', 'README.md', 'SECURITY.md', 'openapi.yaml'],
  ...['package.json', 'package-lock.json', 'tsconfig.json', 'tsconfig.build.json'],
]

/** Fills a directory. `isInstalled`: with the packages of this clone. */
export function copyClone(directory: string, isInstalled: boolean): void {
  const filter = (path: string) => !['node_modules', 'dist'].includes(basename(path))
  for (const name of names) cpSync(join(root, name), join(directory, name), { recursive: true, filter })
  if (!isInstalled) return
  for (const folder of ['node_modules', 'client/node_modules'])
    if (existsSync(join(root, folder))) symlinkSync(join(root, folder), join(directory, folder))
}

/** Turns a copy into a repository with one commit and its benchmark figures. Returns the commit. */
export function commitClone(directory: string): string {
  writeFileSync(join(directory, '.gitignore'), 'node_modules\nbench/\ndist/\nnpm-shrinkwrap.json\n*.tgz\n')
  git(directory, 'init', '--quiet')
  const commit = commitChanges(directory)
  mkdirSync(join(directory, 'bench/results'), { recursive: true })
  writeFileSync(join(directory, 'bench/results/latest.json'), JSON.stringify({ machine: { commit } }))
  return commit
}

/** Commits all changes of a copy. Returns the commit. */
export function commitChanges(directory: string): string {
  git(directory, 'add', '.')
  git(directory, 'commit', '--quiet', '--message', 'all')
  return git(directory, 'rev-parse', '--short=12', 'HEAD')
}

function git(directory: string, ...args: string[]): string {
  const author = ['-c', 'user.name=a', '-c', 'user.email=a@example.org', '-c', 'commit.gpgsign=false']
  return execFileSync('git', [...author, ...args], { cwd: directory, encoding: 'utf8' }).trim()
}
