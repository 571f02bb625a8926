// What a start loads, and where compiled code is cached.
import * as fs from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { spawnCli } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { preload, root, run } from '../support/processes.ts'
import { startService } from '../support/service.ts'
import { copyClone } from './clone.ts'

/** Writes what each thread loads into a file: the URLs of modules, and finally the names of Node's own modules. */
const noteModules = (directory: string) => `
import { appendFileSync } from 'node:fs'
import { registerHooks } from 'node:module'
import { threadId } from 'node:worker_threads'
const note = (text) => appendFileSync(${JSON.stringify(directory)} + '/thread-' + threadId, text + '\\n')
registerHooks({ load: (url, context, next) => (note(url), next(url, context)) })
process.on('exit', () => note(process.moduleLoadList.join('\\n')))
`

test('a start loads no optional package, and the writer thread loads no package', async (t) => {
  const directory = createDirectory(t)
  const DATABASE_URL = `file:${join(directory, 'plants.db')}`
  const { stop } = await startService(t, { DATABASE_URL, ...preload(noteModules(directory)) })
  const read = (thread: number) => fs.readFileSync(join(directory, `thread-${thread}`), 'utf8')
  const find = (text: string, names: string[]) =>
    names.filter((name) => text.includes(`node_modules/${name}/`))

  const plugins = ['cors', 'otel', 'rate-limit'].map((name) => `@fastify/${name}`)
  const late = [...plugins, '@opentelemetry/api', 'jose', 'marked', 'pg', 'prom-client']
  t.same(find(read(0), ['fastify', ...late]), ['fastify'])
  const { dependencies } = JSON.parse(fs.readFileSync(join(root, 'package.json'), 'utf8'))
  t.match(read(1), /writer-thread\.ts$/m)
  t.same(find(read(1), Object.keys(dependencies)), [])
  t.match(await stop(), { code: 0 })
})

const lacking = `
import { registerHooks } from 'node:module'
registerHooks({
  resolve(name, context, next) {
    if (name === '@fastify/cors') throw new Error('there is no ' + name)
    return next(name, context)
  },
})
`

test('a failed start closes what it opened, and exits', { timeout: 30_000 }, async (t) => {
  const DATABASE_URL = `file:${join(createDirectory(t), 'plants.db')}`
  const env = { PORT: '0', ADMIN_PORT: '0', CORS_ORIGIN: 'https://a.example', DATABASE_URL }
  const { ended, output } = spawnCli(t, ['serve'], { ...env, ...preload(lacking) })
  t.match(await ended, { code: 1, signal: null })
  t.match(output(), { stdout: '', stderr: /^plant-store: Error: there is no @fastify\/cors\n/m })
})

/** Makes a clone with links to the packages of this one. Returns the path of its launcher. */
function createClone(directory: string): string {
  copyClone(directory, false)
  const packages = join(directory, 'node_modules')
  fs.mkdirSync(packages)
  for (const name of fs.readdirSync(join(root, 'node_modules')))
    if (name !== '.cache') fs.symlinkSync(join(root, 'node_modules', name), join(packages, name))
  return join(directory, 'bin/plant-store.js')
}

test('compiled code is not cached where other users could change it', async (t) => {
  for (const [umask, isKept, owner] of [
    // Of another user than root, who could not remove it.
    ['077', false, 65_534],
    ['020', false],
    // As on systems where each user has a group.
    ['002', true],
  ] as const) {
    const directory = createDirectory(t)
    const line = `umask ${umask}; exec "$@"`
    const command = [process.execPath, createClone(directory), 'config']
    if (owner && process.getuid?.() === 0) fs.chownSync(directory, owner, owner)
    else if (owner) continue
    t.match(await run('sh', ['-c', line, 'sh', ...command], { cwd: directory }), { code: 0, stderr: '' })
    t.equal(fs.existsSync(join(directory, 'node_modules/.cache')), isKept, umask)
  }
})

test('caches compiled code beside the packages, and starts without a cache', async (t) => {
  const directory = createDirectory(t)
  const launcher = createClone(directory)
  const start = () => run(process.execPath, [launcher, 'config'], { cwd: directory })
  const kept = join(directory, 'node_modules/.cache')
  fs.writeFileSync(kept, 'in the way')
  t.match(await start(), { code: 0, stderr: '' })
  fs.rmSync(kept)
  t.match(await start(), { code: 0, stderr: '' })
  const [version] = fs.readdirSync(join(kept, 'plant-store'))
  t.ok(fs.readdirSync(join(kept, 'plant-store', version as string)).length > 10)
  t.match(await start(), { code: 0, stderr: '' })
})
