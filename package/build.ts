// Writes dist/: the compiled service, the files that its pages load, its commit, and the bill of materials.
import { execFileSync } from 'node:child_process'
import { cpSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describeCommit } from './commit.ts'
import { readLockfile } from './lockfile.ts'
import { makeSbom } from './sbom.ts'

const root = join(import.meta.dirname, '..')
const dist = join(root, 'dist')

rmSync(dist, { recursive: true, force: true })
const compiler = join(root, 'node_modules/typescript/bin/tsc')
execFileSync(process.execPath, [compiler, '-p', join(root, 'tsconfig.build.json')], { stdio: 'inherit' })
const assets = 'src/plugins/docs/static'
cpSync(join(root, assets), join(dist, assets), { recursive: true })
writeFileSync(join(dist, 'sbom.cdx.json'), makeSbom(readLockfile()))
const commit = describeCommit()
if (commit) writeFileSync(join(dist, 'src/commit'), commit)
