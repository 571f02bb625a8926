// Programs that may be missing. Tests that need a missing one are skipped.
import { chmodSync, existsSync, statSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'

/** The programs and their Debian packages. */
const packages = {
  bash: 'bash',
  buildah: 'buildah',
  caddy: 'caddy',
  cc: 'gcc',
  curl: 'curl',
  etcd: 'etcd-server',
  go: 'golang-go',
  haproxy: 'haproxy',
  mke2fs: 'e2fsprogs',
  nginx: 'nginx-light',
  openssl: 'openssl',
  patroni: 'patroni',
  pgbouncer: 'pgbouncer',
  podman: 'podman',
  promtool: 'prometheus',
  python3: 'python3',
  runc: 'runc',
  script: 'bsdutils',
  setpriv: 'util-linux',
  strace: 'strace',
  'systemd-analyze': 'systemd',
  unshare: 'util-linux',
}
export type Tool = keyof typeof packages

/** Finds the path of a program; undefined if it is missing. Daemons may be outside PATH. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin', '/usr/local/sbin']
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
}

/** The `skip` option of a test that needs these tools. With REQUIRE_TOOLS=1 a missing tool is an error. */
export function skipWithout(...tools: Tool[]): string | false {
  const missing = tools.find((tool) => findProgram(tool) === undefined)
  if (missing === undefined) return false
  const reason = `${missing} is not installed (Debian: ${packages[missing]})`
  if (process.env.REQUIRE_TOOLS === '1') throw new Error(reason)
  return reason
}

/** The `skip` option of a test in which root runs this clone as another user. */
export function skipUnlessOthersEnter(): string | false {
  if (process.geteuid?.() !== 0) return 'only root can be two users'
  let folder = import.meta.dirname
  while (folder !== dirname(folder) && statSync(folder).mode & 0o001) folder = dirname(folder)
  return folder === dirname(folder) ? skipWithout('setpriv') : `other users cannot enter ${folder}`
}

/** Lets threads end after a change of user, because tap then writes a file for each of them. */
export function letOthersEnd(): void {
  const notes = '.tap/processinfo'
  if (existsSync(notes)) chmodSync(notes, 0o777)
}
