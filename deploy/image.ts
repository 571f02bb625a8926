// npm run image: builds the container image with buildah or docker. The first argument replaces the tags
// plant-store:VERSION and plant-store:latest; the second is a tarball of the package, which is otherwise created.
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { installLocked } from '../package/archive.ts'
import { describeCommit } from '../package/commit.ts'

const uid = 10001
const repository = join(import.meta.dirname, '..')
const { version, description, license } = JSON.parse(readFileSync(join(repository, 'package.json'), 'utf8'))
const [given, made] = process.argv.slice(2)
const tags = given ? [given] : [`plant-store:${version}`, 'plant-store:latest']

// The user of the image must be able to read its files.
process.umask(0o022)
const context = mkdtempSync(join(tmpdir(), 'plant-store-image-'))
try {
  const root = join(context, 'root')
  mkdirSync(join(context, 'data'))
  installPackage(root)
  copyRuntime(root)
  writeSystemFiles(root)
  build(context)
} finally {
  rmSync(context, { recursive: true, force: true })
}

/** Installs the tarball with the locked dependencies, as the archives do. */
function installPackage(root: string): void {
  if (!made) run('npm', ['pack', '--silent', '--ignore-scripts=false', '--pack-destination', context])
  const tarball = made ?? join(context, `plant-store-${version}.tgz`)
  const folder = join(root, 'usr/lib/node_modules/plant-store')
  for (const directory of [folder, join(root, 'usr/bin')]) mkdirSync(directory, { recursive: true })
  run('tar', ['-xzf', tarball, '-C', folder, '--strip-components=1'])
  installLocked(folder)
  symlinkSync('../lib/node_modules/plant-store/bin/plant-store.js', join(root, 'usr/bin/plant-store'))
  // The image has no `env` that could find Node.
  const launcher = join(folder, 'bin/plant-store.js')
  writeFileSync(launcher, readFileSync(launcher, 'utf8').replace(/^#!.*/, '#!/usr/bin/node'))
}

/** Moves Node to /usr/bin, and copies the libraries that ldd(1) lists, and their licenses. */
function copyRuntime(root: string): void {
  const name = `node-linux-${process.arch}`
  const folder = join(root, 'usr/lib/node_modules/plant-store/node_modules', name)
  const node = join(root, 'usr/bin/node')
  copyFileSync(join(folder, 'bin/node'), node)
  for (const rest of ['bin', 'include', 'share']) rmSync(join(folder, rest), { recursive: true })
  const libraries = execFileSync('ldd', [node], { encoding: 'utf8' }).match(/\/\S+\.so\S*/g) ?? []
  const owners = ['libc6', 'libgcc-s1', 'libstdc++6'].map((owner) => `/usr/share/doc/${owner}/copyright`)
  // Other systems than Debian keep them elsewhere.
  for (const file of [...libraries, ...owners.filter((name) => existsSync(name))]) {
    mkdirSync(dirname(join(root, file)), { recursive: true })
    copyFileSync(file, join(root, file))
  }
}

function writeSystemFiles(root: string): void {
  copyFileSync(join(import.meta.dirname, 'health.mjs'), join(root, 'usr/lib/plant-store-health.mjs'))
  for (const folder of ['etc', 'tmp']) mkdirSync(join(root, folder))
  run('chmod', ['--recursive', 'u=rwX,go=rX', root])
  chmodSync(join(root, 'tmp'), 0o1777)
  writeFileSync(join(root, 'etc/passwd'), `plant-store:x:${uid}:${uid}::/data:/\n`)
  writeFileSync(join(root, 'etc/group'), `plant-store:x:${uid}:\n`)
  writeFileSync(join(root, 'etc/nsswitch.conf'), 'hosts: files dns\n')
}

function build(context: string): void {
  const file = ['--file', join(import.meta.dirname, 'Containerfile')]
  const labels = describeImage().flatMap((label) => ['--label', label])
  const named = [...file, ...labels, ...tags.flatMap((tag) => ['--tag', tag]), context]
  // The OCI format has no health check. Nothing runs in the build, so it needs no isolation.
  if (works('buildah', '--version'))
    // Without the build time, so that builds are byte-identical.
    run('buildah', ['bud', '--format', 'docker', '--isolation', 'chroot', '--timestamp', '0', ...named])
  else if (works('docker', 'info')) run('docker', ['build', ...named])
  else throw new Error('neither buildah nor docker is available; on Debian: apt-get install buildah')
}

/** The labels of the OCI's image specification. Without git history there is no revision. */
function describeImage(): string[] {
  const facts = { title: 'Plant Store', description, version, licenses: license }
  const revision = works('git', 'rev-parse') ? describeCommit() : undefined
  const known = revision === undefined ? facts : { ...facts, revision }
  return Object.entries(known).map(([name, value]) => `org.opencontainers.image.${name}=${value}`)
}

function works(command: string, argument: string): boolean {
  try {
    execFileSync(command, [argument], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

function run(command: string, args: string[]): void {
  execFileSync(command, args, { cwd: repository, stdio: ['ignore', 'inherit', 'inherit'] })
}
