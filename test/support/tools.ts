// Programs that only some machines have: a test that needs one says so, and is left out without it.
import { chmodSync, existsSync, statSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'

/** Each program, and the package of Debian that has it. */
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

/** Where a program is; undefined: nowhere. Daemons are not in everybody's path. */
export function findProgram(name: string): string | undefined {
  const folders = [...(process.env.PATH ?? '').split(delimiter), '/usr/sbin', '/sbin', '/usr/local/sbin']
  return folders.map((folder) => join(folder, name)).find((path) => existsSync(path))
}

/** What `skip` is for a test that needs these tools. With REQUIRE_TOOLS=1 a tool that is missing is an error. */
export function skipWithout(...tools: Tool[]): string | false {
  const missing = tools.find((tool) => findProgram(tool) === undefined)
  if (missing === undefined) return false
  const reason = `${missing} is not installed (Debian: ${packages[missing]})`
  if (process.env.REQUIRE_TOOLS === '1') throw new Error(reason)
  return reason
}

/** What `skip` is for a test in which root has another user run this clone. */
export function skipUnlessOthersEnter(): string | false {
  if (process.geteuid?.() !== 0) return 'only root can be two users'
  let folder = import.meta.dirname
  while (folder !== dirname(folder) && statSync(folder).mode & 0o001) folder = dirname(folder)
  return folder === dirname(folder) ? skipWithout('setpriv') : `other users cannot enter ${folder}`
}

/** Lets threads of another user end: tap writes down what each has loaded, as the user that the process has then. */
export function letOthersEnd(): void {
  const notes = '.tap/processinfo'
  if (existsSync(notes)) chmodSync(notes, 0o777)
}
