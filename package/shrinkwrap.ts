// Writes npm-shrinkwrap.json, the runtime part of the lockfile, for `npm pack`, or removes it afterwards. `npm ci` in
// the unpacked package installs exactly these versions. It must not stay in a clone, where npm would use it as the
// lockfile.
import { rmSync, writeFileSync } from 'node:fs'
import { findRuntimePackages, readLockfile } from './lockfile.ts'

const file = new URL('../npm-shrinkwrap.json', import.meta.url)

if (process.argv.includes('--remove')) rmSync(file, { force: true })
else writeFileSync(file, makeShrinkwrap())

function makeShrinkwrap(): string {
  const lockfile = readLockfile()
  const packages = Object.fromEntries(findRuntimePackages(lockfile).map(({ path, locked }) => [path, locked]))
  const { devDependencies, workspaces, ...service } = packages[''] as Record<string, unknown>
  return `${JSON.stringify({ ...lockfile, packages: { ...packages, '': service } }, null, 2)}\n`
}
