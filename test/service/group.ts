// The service with all that started it, in a process group of its own: a terminal and a service manager signal the group.
import { type ChildProcessByStdio, spawn } from 'node:child_process'
import { once } from 'node:events'
import { connect } from 'node:net'
import { delimiter, join } from 'node:path'
import type { Readable } from 'node:stream'
import { fileURLToPath } from 'node:url'
import type { Test } from 'tap'
import { createDirectory } from '../support/engines.ts'
import { noteProcess } from '../support/processes.ts'
import { listeningOn, token } from '../support/service.ts'
import { compose, readAnswers } from '../support/wire.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const body = '{"name":"late","tag":""}'

/** PATH without what npm puts before it: the system's Node, and its npm. */
const systemPath = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((directory) => !directory.includes('node_modules'))
  .join(delimiter)

/** Ways to the service in which a signal to the group reaches it more than once. */
export const starters: [how: string, command: string, args: string[]][] = [
  ['the launcher', 'node', [join(root, 'bin/plant-store.js'), 'serve', '--port', '0']],
  ['npm start', 'npm', ['start', '--', '--port', '0']],
]

type Group = ChildProcessByStdio<null, Readable, Readable>

/**
 * Starts the service by a command, sends it half an addition, signals the whole group (`often`: all the time until it is
 * heard), then sends the rest. Asserts that the addition was answered, and that every process ended by itself.
 */
export async function signalGroup(
  t: Test,
  [, command, args]: (typeof starters)[number],
  signal: NodeJS.Signals,
  { often = false } = {},
): Promise<void> {
  const child = spawn(command, args, {
    cwd: root,
    env: {
      PATH: systemPath,
      HOME: process.env.HOME,
      DATABASE_URL: `file:${join(createDirectory(t), 'plants.db')}`,
      ACCESS_TOKENS: token,
    },
    detached: true,
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  noteProcess(child)
  const output = collect(child)
  const socket = connect(Number(new URL(await listeningOn(child)).port), '127.0.0.1')
  socket.on('error', () => {})
  t.teardown(() => socket.destroy())
  // The service waits for the body once it has said so.
  const bytes = compose({ body, headers: { Expect: '100-continue' } })
  socket.write(bytes.subarray(0, -5))
  await once(socket, 'data')
  let received = ''
  socket.on('data', (chunk) => (received += chunk))
  const ended = once(child, 'close')
  let isRunning = true
  void ended.then(() => (isRunning = false))
  process.kill(-(child.pid as number), signal)
  while (isRunning && !/"msg":"stopping"/.test(output.text)) {
    if (often) process.kill(-(child.pid as number), signal)
    await new Promise(setImmediate)
  }
  socket.write(bytes.subarray(-5))
  t.same((await ended).at(0), 0, output.text)
  t.same(
    readAnswers(received).map(({ status }) => status),
    [200],
  )
}

function collect(child: Group): { text: string } {
  const output = { text: '' }
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => (output.text += chunk))
  return output
}
