// A disk that takes long to sync, made by strace: it holds each fsync of the server back, and lets the other system
// calls run at full speed (--seccomp-bpf).
import { isInstalled } from './processes.ts'

const calls = 'fsync,fdatasync'
const strace = ['strace', '-D', '-f', '--seccomp-bpf', '-o', '/dev/null', '-e', `trace=${calls}`]

/** The command under which each fsync takes so many milliseconds longer. */
export function slowSync(ms: number): string[] {
  return [...strace, '-e', `inject=${calls}:delay_exit=${ms}ms`]
}

/** Why there is no such disk here. */
export function unableToSlow(): string | undefined {
  return isInstalled('strace') ? undefined : 'strace is not installed, which makes the disk slow'
}
