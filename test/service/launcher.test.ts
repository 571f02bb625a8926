// bin/plant-store.js and npm start: how they start and stop the service, and what they report as missing.
import { once } from 'node:events'
import { mkdirSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { text } from 'node:stream/consumers'
import { type Test, test } from 'tap'
import { createDirectory } from '../support/engines.ts'
import { isFull } from '../support/full.ts'
import { descendantsOf, inherited, isRunning, root, run, spawnProgram } from '../support/processes.ts'
import { request, token } from '../support/service.ts'
import { compose, readAnswers } from '../support/wire.ts'
import { copyClone } from './clone.ts'
import { systemPath } from './installed.ts'

const launcher = join(root, 'bin/plant-store.js')
/** Makes Node report a version that is too old for the service, and unable to replace its process. */
const asOldNode = `--import=data:text/javascript,${encodeURIComponent(`
  Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.0.0' } })
  Object.defineProperty(process, 'execPath', { value: '/usr/bin/node' })
  process.execve = undefined`)}`

/** Starts `COMMAND ARGUMENTS` on a free port and waits until the service is ready. */
async function start(t: Test, command: string, args: string[], env: NodeJS.ProcessEnv = inherited()) {
  const DATABASE_URL = `file:${join(createDirectory(t), 'plants.db')}`
  const all = { ...env, HOME: process.env.HOME, DATABASE_URL, ACCESS_TOKENS: token }
  // As from a terminal: a signal to the process group reaches all of its processes.
  const service = spawnProgram(t, command, args, { cwd: root, env: all, detached: true })
  const exited = once(service.child, 'exit')
  const url = await service.listening()
  const pid = service.child.pid as number
  const descendants = descendantsOf(pid)
  t.teardown(() => {
    for (const one of descendants.filter(isRunning)) process.kill(one, 'SIGKILL')
  })
  t.equal((await request(`${url}/plants`)).status, 200)
  return { ...service, pid, url, exited, descendants, stderr: () => service.output().stderr }
}

const serve = ['serve', '--port', '0']

for (const [title, processes, ...args] of [
  ['if Node can replace its process, the launcher becomes the service and prints nothing', 1, launcher],
  ['with the flag of npm start, it is also one process', 1, '--min-semi-space-size=8', launcher],
  ['otherwise, the launcher forwards SIGTERM, and exits after the service', 2, asOldNode, launcher],
] as const)
  test(`${title}; SIGUSR1 opens no debugger`, async (t) => {
    const { pid, stop, descendants, stderr } = await start(t, process.execPath, [...args, ...serve])
    const pids = [pid, ...descendants]
    t.equal(pids.length, processes)
    for (const pid of pids) process.kill(pid, 'SIGUSR1')
    t.match(await stop(), { code: 0, signal: null })
    t.notMatch(stderr(), /warning|Debugger/i)
  })

test('a service whose launcher was killed stops as on SIGTERM', async (t) => {
  const { child, exited, ended, stderr } = await start(t, process.execPath, [asOldNode, launcher, ...serve])
  child.kill('SIGKILL')
  t.same(await exited, [null, 'SIGKILL'])
  await ended
  t.match(stderr(), /"signal":"SIGTERM","msg":"stopping"/)
})

test('a signal that kills the service also kills the launcher', async (t) => {
  const { exited, descendants } = await start(t, process.execPath, [asOldNode, launcher, ...serve])
  process.kill(descendants[0] as number, 'SIGKILL')
  t.same(await exited, [null, 'SIGKILL'])
})

test('the launcher exits with the code of the command', async (t) => {
  for (const node of [[], [asOldNode]])
    t.match(await run(process.execPath, [...node, launcher, 'gibberish']), { code: 2 })
})

test('npm start accepts flags, and SIGTERM to npm stops the service cleanly', async (t) => {
  const { stop, stderr } = await start(t, 'npm', ['start', '--', '--port', '0'])
  await stop()
  t.match(stderr(), /"signal":"SIGTERM","msg":"stopping"/)
  t.notMatch(stderr(), /warning: |Error/)
})

/** Ways to start the service in which it gets a signal to the process group more than once. */
const starters: [how: string, command: string, ...args: string[]][] = [
  ['the launcher', 'node', launcher, ...serve],
  ['npm start', 'npm', 'start', '--', '--port', '0'],
]

for (const [how, command, ...args] of starters)
  for (const signal of isFull ? (['SIGINT', 'SIGTERM'] as const) : (['SIGTERM'] as const))
    test(`many ${signal} through ${how} cause one shutdown, and a half-sent request gets its response`, async (t) => {
      const { child, pid, url, ended, stderr } = await start(t, command, args, { PATH: systemPath })
      const socket = connect(Number(new URL(url).port), '127.0.0.1')
      // The service waits for the body once it has asked for it.
      const bytes = compose({ body: '{"name":"late","tag":""}', headers: { Expect: '100-continue' } })
      socket.write(bytes.subarray(0, -5))
      await once(socket, 'data')
      const received = text(socket)
      while (child.exitCode === null && !/"msg":"stopping"/.test(stderr())) {
        process.kill(-pid, signal)
        await new Promise(setImmediate)
      }
      socket.write(bytes.subarray(-5))
      t.equal((await ended).code, 0, stderr())
      const [answer, ...more] = readAnswers(await received)
      t.match(answer, { status: 200, text: '{"name":"late","tag":""}' })
      t.equal(answer?.headers.get('connection'), 'close')
      t.same(more, [])
    })

/** Makes a clone with only these packages installed. */
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
  ['no Node of npm', ['fastify'], /^plant-store: Node 24\.15 or newer is required, .+\n$/],
  [
    'a Node of npm that does not start',
    ['fastify', `node-${platform}-${process.arch}`],
    /^plant-store: the Node that npm installed does not start here \(.+ENOENT\); install Node 24\.15 or newer\n$/,
  ],
]

test('Node 24.15 and newer suffice, without the Node of npm', async (t) => {
  const file = join(createClone(t, 'fastify'), 'bin/plant-store.js')
  for (const [version, suffices] of Object.entries({ '24.14.9': false, '24.15.0': true, '25.0.0': true })) {
    const { stderr } = await run(process.execPath, [asOldNode.replace('20.0.0', version), file, 'serve'])
    t.equal(!stderr.includes('or newer is required'), suffices, version)
  }
})

for (const [what, installed, message] of missing)
  test(`an old Node with ${what} is reported in one line`, async (t) => {
    const file = join(createClone(t, ...installed), 'bin/plant-store.js')
    const { code, stdout, stderr } = await run(process.execPath, [asOldNode, file, 'serve'])
    t.same([code, stdout], [1, ''])
    t.match(stderr, message)
  })
