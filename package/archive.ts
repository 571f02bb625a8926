// An archive for a machine without npm or network: the package, the packages that it needs, Node for one platform, and a
// launcher. The archive of a package is reproducible.
import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { gzipSync } from 'node:zlib'

/** The platforms with an archive, and their names in npm. */
export const platforms: Record<string, [os: string, cpu: string]> = {
  'linux-x64': ['linux', 'x64'],
  'linux-arm64': ['linux', 'arm64'],
  'darwin-arm64': ['darwin', 'arm64'],
  'darwin-x64': ['darwin', 'x64'],
  'win-x64': ['win32', 'x64'],
}

/** The modification time of every entry, as in `npm pack`. */
const time = '1985-10-26 08:15:00Z'
const flags = '--min-semi-space-size=8 --disable-sigusr1'
const shell = (node: string) => `#!/bin/sh
# Starts Plant Store on the Node that came with it.
here=$(dirname "$(readlink -f "$0")")
exec "$here/${node}/bin/node" ${flags} "$here/bin/plant-store.js" "$@"
`
const batch = (node: string) => `@rem Starts Plant Store on the Node that came with it.
@"%~dp0${node.replaceAll('/', '\\')}\\bin\\node.exe" ${flags} "%~dp0bin\\plant-store.js" %*
`

/** Creates the archive for a platform, in a directory, from the tarball of `npm pack`. Returns its path. */
export function makeArchive(tarball: string, platform: string, directory: string): string {
  const name = basename(tarball).replace(/\.tgz$/, `-${platform}`)
  const place = mkdtempSync(join(tmpdir(), 'plant-store-archive-'))
  try {
    const folder = join(place, name)
    mkdirSync(folder)
    execFileSync('tar', ['-xzf', tarball, '-C', folder, '--strip-components=1'])
    installPackages(folder, platform)
    const archive = join(directory, `${name}.tar.gz`)
    writeFileSync(archive, gzipSync(makeTar(place, name), { level: 9 }), { flag: 'wx' })
    return archive
  } finally {
    rmSync(place, { recursive: true, force: true })
  }
}

/**
 * Installs the dependencies of an unpacked package: exactly the versions in npm-shrinkwrap.json, which `npm install`
 * of a tarball ignores. npm verifies the checksum of each package.
 */
export function installLocked(folder: string, ...more: string[]): void {
  const options = ['--ignore-scripts', '--include=optional', '--prefer-offline']
  const args = ['ci', ...options, '--no-audit', '--no-fund', '--silent', ...more]
  const manifest = join(folder, 'package.json')
  const text = readFileSync(manifest, 'utf8')
  // npm compares these two with the lockfile, which has only runtime packages.
  const { devDependencies, workspaces, ...service } = JSON.parse(text)
  writeFileSync(manifest, JSON.stringify(service))
  execFileSync('npm', args, { cwd: folder, stdio: ['ignore', 'ignore', 'inherit'] })
  writeFileSync(manifest, text)
  for (const rest of ['.bin', '.package-lock.json'])
    rmSync(join(folder, 'node_modules', rest), { recursive: true })
}

function installPackages(folder: string, platform: string): void {
  const [os, cpu] = platforms[platform] as [string, string]
  installLocked(folder, `--os=${os}`, `--cpu=${cpu}`)
  const packages = join(folder, 'node_modules')
  const node = readdirSync(packages).find((name) => /^node-(bin-)?(linux|darwin|win)-/.test(name))
  // Headers and manuals are not needed.
  for (const rest of [`${node}/include`, `${node}/share`])
    rmSync(join(packages, rest), { recursive: true, force: true })
  const launcher = platform.startsWith('win') ? 'plant-store.cmd' : 'plant-store'
  const line = platform.startsWith('win') ? batch : shell
  writeFileSync(join(folder, launcher), line(`node_modules/${node}`), { mode: 0o755 })
}

/** Creates a reproducible tar archive of one entry of a directory. */
export function makeTar(place: string, name: string): Buffer {
  const same = ['--sort=name', `--mtime=${time}`, '--owner=0', '--group=0', '--numeric-owner']
  const args = ['--create', '--format=ustar', ...same, '--mode=u+rwX,go+rX,go-w', '-C', place, name]
  return execFileSync('tar', args, { maxBuffer: 2 ** 30 })
}
