// A copy of this clone, for what writes into it: files of tests run beside each other.
import { cpSync, existsSync, symlinkSync } from 'node:fs'
import { basename, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const root = fileURLToPath(new URL('../../', import.meta.url))
/** What the package is made of. */
const names = [
  ...['bin', 'client', 'deploy', 'docs', 'examples', 'package', 'schemas', 'src'],
  ...['CHANGELOG.md', 'LICENSE', 'README.md', 'openapi.yaml'],
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
