// However a test file ends, nothing that it started stays behind: not when it is killed in the middle either.
import { type ChildProcess, spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, existsSync, mkdtempSync, readdirSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { noteDirectory, noteProcess } from '../support/leftovers.ts'
import { descendantsOf, inherited, isRunning } from '../support/processes.ts'
import type { Started } from './left-behind.ts'

const script = fileURLToPath(new URL('./left-behind.ts', import.meta.url))
const patienceMs = 20_000
const pauseMs = 50

/** What is still there of processes and of a directory's content. */
function findLeft(pids: number[], directory: string): string[] {
  return [...pids.filter(isRunning).map((pid) => `process ${pid}`), ...readdirSync(directory)]
}

async function findLeftInTheEnd(pids: number[], directory: string): Promise<string[]> {
  const endMs = performance.now() + patienceMs
  while (findLeft(pids, directory).length > 0 && performance.now() < endMs) await sleep(pauseMs)
  return findLeft(pids, directory)
}

/** Runs the other test file in a directory for temporary files of its own, until it has started all it starts. */
async function begin(t: Test) {
  const directory = mkdtempSync(join(tmpdir(), 'plant-store-leftovers-'))
  // PostgreSQL runs as another user where tests run as root.
  chmodSync(directory, 0o755)
  noteDirectory(directory)
  t.teardown(() => rmSync(directory, { recursive: true, force: true }))
  const child = spawn(process.execPath, [script], {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
    env: { ...inherited(), TMPDIR: directory },
  })
  noteProcess(child)
  t.teardown(() => child.kill('SIGKILL'))
  const { url, directories, postmaster } = await startedOf(child)
  // Without the sessions that were just ending when it told of itself.
  const pids = [...descendantsOf(child.pid as number), postmaster, ...descendantsOf(postmaster)].filter(
    isRunning,
  )
  t.match(url, /^http:/)
  t.ok(directories.every((path) => path.startsWith(directory) && existsSync(path)))
  t.ok(pids.length > 4 && pids.includes(postmaster), `${pids.length} processes`)
  return { child, pids, directory }
}

/** What the other test file says it has started; what it runs on has messages of its own. */
async function startedOf(child: ChildProcess): Promise<Started> {
  for (;;) {
    const [message] = await once(child, 'message')
    if ('postmaster' in message) return message
  }
}

for (const signal of ['SIGKILL', 'SIGTERM'] as const)
  test(`a test file that is ended by ${signal} leaves nothing behind`, async (t) => {
    const { child, pids, directory } = await begin(t)
    const ended = once(child, 'exit')
    child.kill(signal)
    await ended
    t.same(await findLeftInTheEnd(pids, directory), [])
  })

test('a test file that ends normally leaves nothing behind', async (t) => {
  const { child, pids, directory } = await begin(t)
  const ended = once(child, 'exit')
  child.send('go on')
  t.same(await ended, [0, null])
  t.same(await findLeftInTheEnd(pids, directory), [])
})
