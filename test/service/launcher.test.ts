// bin/plant-store.js and npm start: how the service starts through them, ends with them, and what they say is missing.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Test, test } from 'tap'
import { createDirectory } from '../support/engines.ts'
import { descendantsOf, inherited, noteProcess, run } from '../support/processes.ts'
import { listeningOn, request, token } from '../support/service.ts'
import { copyClone } from './clone.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const launcher = join(root, 'bin/plant-store.js')
const preload = (code: string) => `--import=data:text/javascript,${encodeURIComponent(code)}`
/** Makes a Node take itself for one that is too old to run the service, and cannot replace itself. */
const asOldNode = preload(`
  Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.0.0' } })
  Object.defineProperty(process, 'execPath', { value: '/usr/bin/node' })
  process.execve = undefined`)

/** Starts `COMMAND ARGUMENTS` on a free port and waits until the service is ready. */
async function start(t: Test, command: string, args: string[]) {
  const DATABASE_URL = `file:${join(createDirectory(t), 'plants.db')}`
  const child = spawn(command, args, {
    cwd: root,
    env: { ...inherited(), HOME: process.env.HOME, DATABASE_URL, ACCESS_TOKENS: token },
    stdio: ['ignore', 'pipe', 'pipe'],
  })
  noteProcess(child)
  let stderr = ''
  child.stderr.on('data', (chunk) => (stderr += chunk))
  const ended = once(child, 'exit')
  // When the service has let go of them as well.
  const closed = once(child, 'close')
  const url = await listeningOn(child)
  const descendants = descendantsOf(child.pid as number)
  t.teardown(() => {
    for (const pid of [child.pid as number, ...descendants]) tryKill(pid)
  })
  t.equal((await request(`${url}/plants`)).status, 200)
  return { child, ended, closed, descendants, stderr: () => stderr }
}

function tryKill(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch {
    // It has ended.
  }
}

const serve = ['serve', '--port', '0']

for (const [title, processes, ...args] of [
  ['where Node can, the launcher becomes the service, without a word of its own', 1, launcher],
  ['with the flag of npm start it is the service from the start', 1, '--min-semi-space-size=8', launcher],
  ['elsewhere it passes SIGTERM on, and ends when the service has', 2, asOldNode, launcher],
] as const)
  test(`${title}; no debugger is opened by SIGUSR1`, async (t) => {
    const { child, closed, descendants, stderr } = await start(t, process.execPath, [...args, ...serve])
    const pids = [child.pid as number, ...descendants]
    t.equal(pids.length, processes)
    for (const pid of pids) process.kill(pid, 'SIGUSR1')
    child.kill('SIGTERM')
    t.same(await closed, [0, null])
    t.notMatch(stderr(), /warning|Debugger/i)
  })

test('killed, it leaves no service behind, which notices and ends as by SIGTERM', async (t) => {
  const { child, ended, closed, stderr } = await start(t, process.execPath, [asOldNode, launcher, ...serve])
  child.kill('SIGKILL')
  t.same(await ended, [null, 'SIGKILL'])
  await closed
  t.match(stderr(), /"signal":"SIGTERM","msg":"stopping"/)
})

test('a signal that ends the service ends the launcher, too', async (t) => {
  const { ended, descendants } = await start(t, process.execPath, [asOldNode, launcher, ...serve])
  process.kill(descendants[0] as number, 'SIGKILL')
  t.same(await ended, [null, 'SIGKILL'])
})

test('the exit code is that of the command', async (t) => {
  for (const node of [[], [asOldNode]]) {
    const { code } = await run(process.execPath, [...node, launcher, 'gibberish'])
    t.equal(code, 2)
  }
})

test('npm start takes flags, and SIGTERM to npm is a clean end', async (t) => {
  const { child, ended, closed, stderr } = await start(t, 'npm', ['start', '--', '--port', '0'])
  child.kill('SIGTERM')
  await Promise.all([ended, closed])
  t.match(stderr(), /"signal":"SIGTERM","msg":"stopping"/)
  t.notMatch(stderr(), /warning: |Error/)
})

/** A clone in which nothing, or only what is named, is installed. */
function createClone(t: Test, ...installed: string[]): string {
  const clone = createDirectory(t)
  copyClone(clone, false)
  for (const name of installed) {
    mkdirSync(join(clone, 'node_modules', name), { recursive: true })
    writeFileSync(join(clone, 'node_modules', name, 'package.json'), JSON.stringify({ name }))
  }
  return clone
}

test('npm start before npm ci is reported in one line', async (t) => {
  const { code, stderr } = await run('npm', ['start'], { cwd: createClone(t) })
  t.equal(code, 1)
  t.match(stderr, /^plant-store: dependencies are not installed; run: npm ci$/m)
  t.notMatch(stderr, /^\s+at /m)
})

const platform = process.platform === 'win32' ? 'win' : process.platform
const missing: [what: string, installed: string[], message: RegExp][] = [
  ['no Node that came along', ['fastify'], /^plant-store: Node 24\.15 or newer is required, .+\n$/],
  [
    'one that does not start here',
    ['fastify', `node-${platform}-${process.arch}`],
    /^plant-store: the Node that npm installed does not start here \(.+ENOENT\); install Node 24\.15 or newer\n$/,
  ],
]

for (const [what, installed, message] of missing)
  test(`an old Node and ${what} is reported in one line`, async (t) => {
    const file = join(createClone(t, ...installed), 'bin/plant-store.js')
    const { code, stdout, stderr } = await run(process.execPath, [asOldNode, file, 'serve'])
    t.same([code, stdout], [1, ''])
    t.match(stderr, message)
  })
