// The archives of a release: the one for this platform runs without Node and npm. A full run makes all of them.
import { createHash } from 'node:crypto'
import { mkdirSync, readdirSync, readFileSync, statSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import tap, { test } from 'tap'
import { makeArchive, platforms } from '../../package/archive.ts'
import { createDirectory } from '../support/engines.ts'
import { isFull } from '../support/full.ts'
import { run, spawnProgram } from '../support/processes.ts'
import { findProgram } from '../support/tools.ts'
import { copyClone } from './clone.ts'

const own = `${process.platform}-${process.arch}`
const mostBytes = 70 * 2 ** 20
const alder = { name: 'Black alder', tag: 'Alnus glutinosa' }
const directory = createDirectory(tap)
const skip = process.platform !== 'linux' && 'GNU tar and Linux make them'

function make(name: string, platform: string): string {
  const target = join(directory, name)
  mkdirSync(target, { recursive: true })
  const [tarball = ''] = readdirSync(directory).filter((one) => one.endsWith('.tgz'))
  return makeArchive(join(directory, tarball), platform, target)
}

const hash = (path: string) => createHash('sha256').update(readFileSync(path)).digest('hex')

test('an archive that is made twice is byte-identical, and at most 70 MiB', { skip }, async (t) => {
  const clone = join(directory, 'clone')
  copyClone(clone, true)
  const { code, stderr } = await run('npm', ['pack', '--pack-destination', directory], { cwd: clone })
  t.equal(code, 0, stderr)
  for (const platform of isFull ? Object.keys(platforms) : [own]) {
    const [path, again] = [make('first', platform), make('second', platform)]
    t.equal(hash(path), hash(again), platform)
    const { size } = statSync(path)
    t.ok(size <= mostBytes, `${platform}: ${(size / 1e6).toFixed(1)} MB`)
  }
})

test('an unpacked archive serves, adds, lists and backs up without Node and npm', { skip }, async (t) => {
  const first = join(directory, 'first')
  const [archive = ''] = readdirSync(first).filter((name) => name.includes(own))
  const place = createDirectory(t)
  t.equal((await run('tar', ['-xzf', join(first, archive), '-C', place])).code, 0)
  const home = join(place, archive.replace('.tar.gz', ''))
  const bin = join(place, 'bin')
  mkdirSync(bin)
  for (const name of ['sh', 'dirname', 'readlink', 'env'])
    symlinkSync(findProgram(name) as string, join(bin, name))
  const options = { cwd: home, env: { PATH: bin, PORT: '0' } }
  const { child, ended, listening, output } = spawnProgram(t, './plant-store', ['serve'], options)
  const url = `${await listening()}/plants`
  const headers = {
    authorization: `Bearer ${/plant_\w+/.exec(output().stdout)?.[0]}`,
    'content-type': 'application/json',
  }
  const added = await fetch(url, { method: 'POST', headers, body: JSON.stringify(alder) })
  t.same([added.status, await added.json()], [200, alder])
  t.same(await (await fetch(url, { headers })).json(), [alder])
  t.match(await run('./plant-store', ['backup', 'copy.db'], options), { code: 0 })
  const verified = await run('./plant-store', ['verify', '--database-url', 'file:copy.db'], options)
  t.match(verified, { code: 0, stdout: /1 plant/ })
  child.kill('SIGTERM')
  t.match(await ended, { code: 0, signal: null }, 'the launcher has become the service')
})
