// Cleans up behind a test file, however that ends: when its standard input closes, it kills the given processes with
// their descendants, and removes the given directories. It is a separate process, because a time-out and `--bail` kill
// the test file.
import { rmSync } from 'node:fs'
import { text } from 'node:stream/consumers'
import { signalAll } from './processes.ts'

const noted = { pid: new Set<string>(), directory: new Set<string>() }
for (const line of (await text(process.stdin)).split('\n').slice(0, -1)) {
  const [sign, kind, value] = [line[0], ...line.slice(1).split(/ (.*)/s)] as [
    string,
    keyof typeof noted,
    string,
  ]
  if (sign === '+') noted[kind].add(value)
  else noted[kind].delete(value)
}
for (const pid of noted.pid) signalAll(Number(pid), 'SIGKILL')
for (const directory of noted.directory) rmSync(directory, { recursive: true, force: true, maxRetries: 5 })
