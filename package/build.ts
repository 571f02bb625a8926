// Writes dist/: the compiled service, the files that its pages load, its commit, and the bill of materials.
import { execFileSync } from 'node:child_process'
import { cpSync, existsSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { readLockfile } from './lockfile.ts'
import { makeSbom } from './sbom.ts'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')

rmSync(dist, { recursive: true, force: true })
const compiler = join(root, 'node_modules/typescript/bin/tsc')
execFileSync(process.execPath, [compiler, '-p', join(root, 'tsconfig.build.json')], { stdio: 'inherit' })
cpSync(join(root, 'src/site/static'), join(dist, 'src/site/static'), { recursive: true })
writeFileSync(join(dist, 'sbom.cdx.json'), makeSbom(readLockfile()))

// Not the commit of whatever repository a copy without one may lie in.
if (existsSync(join(root, '.git'))) {
  const describe = ['describe', '--always', '--dirty', '--exclude=*', '--abbrev=12']
  const commit = execFileSync('git', describe, { cwd: root, encoding: 'utf8' }).trim()
  writeFileSync(join(dist, 'src/commit'), commit)
}
