#!/usr/bin/env node
// Starts the command line on a suitable Node: this one, or the one that npm installed with the package.
// Plain JavaScript, so that even an old Node can report what is missing.
/* c8 ignore start: tests run this on several Nodes, most of which cannot count its coverage */
import { existsSync } from 'node:fs'
import module from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const needed = [24, 15]
/** A young generation of 8 MiB outlives most requests, so that few objects survive it. SIGUSR1 opens no debugger. */
const flags = ['--min-semi-space-size=8', '--disable-sigusr1']
const require = module.createRequire(import.meta.url)
/** A clone runs its sources; a package has only compiled code. */
const source = fileURLToPath(new URL('../src/cli.ts', import.meta.url))
const cli = existsSync(source) ? source : fileURLToPath(new URL('../dist/src/cli.js', import.meta.url))

/**
 * Caches compiled code for the next start, beside the packages; not with a umask that would let other users write there,
 * nor for tests with coverage, which cached code lacks.
 */
const cache = fileURLToPath(new URL('../node_modules/.cache/plant-store', import.meta.url))
const isSafe = process.platform === 'win32' || (process.umask() & 0o002) !== 0
if (isSafe && !process.env.NODE_V8_COVERAGE) process.env.NODE_COMPILE_CACHE ??= cache

const [major, minor] = process.versions.node.split('.').map(Number)
const isNewEnough = major > needed[0] || (major === needed[0] && minor >= needed[1])
const runtime = isNewEnough ? process.execPath : findRuntime()

if (!isInstalled('fastify')) fail('its packages are not installed; run: npm ci')
else if (runtime) await start(runtime)
else
  fail(
    `Node ${needed.join('.')} or newer is needed, and this is ${process.version}; ` +
      'npm installs one beside it, unless told to omit optional packages',
  )

function isInstalled(name) {
  return locate(`${name}/package.json`) !== undefined
}

function locate(file) {
  try {
    return require.resolve(file)
  } catch {
    return undefined
  }
}

/** Finds the Node that npm installed for this platform. */
function findRuntime() {
  const system = process.platform === 'win32' ? 'win' : process.platform
  const manifest = [`node-${system}-${process.arch}`, `node-bin-${system}-${process.arch}`]
    .map((name) => locate(`${name}/package.json`))
    .find((found) => found)
  return manifest && join(dirname(manifest), 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
}

async function start(runtime) {
  if (isNewEnough && flags.every((flag) => process.execArgv.includes(flag))) return await load()
  const args = [...flags, cli, ...process.argv.slice(2)]
  // Replacing this process leaves nothing between the service and its parent. Node's warning would come a turn later.
  if (isNewEnough && process.execve && process.platform !== 'win32')
    process.execve(runtime, [runtime, ...args], process.env)
  else await run(runtime, args)
}

/** Runs the command line in this process, which has the flags already, as with npm start. */
async function load() {
  if (process.env.NODE_COMPILE_CACHE) module.enableCompileCache(process.env.NODE_COMPILE_CACHE)
  await import(pathToFileURL(cli))
}

/** Starts the command line as a child. Its channel closes however this process ends, and src/cli.ts stops then. */
async function run(runtime, args) {
  // An older Node may lack the flag that keeps SIGUSR1 from opening a debugger.
  process.on('SIGUSR1', () => {})
  const { spawn } = await import('node:child_process')
  const signals = ['SIGTERM', 'SIGINT', 'SIGHUP']
  const child = spawn(runtime, args, { stdio: ['inherit', 'inherit', 'inherit', 'ipc'] })
  for (const signal of signals) process.on(signal, () => child.kill(signal))
  child.on('error', ({ message }) => {
    fail(
      `the Node that npm installed does not start here (${message}); install Node ${needed.join('.')} or newer`,
    )
  })
  child.on('exit', (code, signal) => {
    if (!signal) process.exit(code)
    process.removeAllListeners(signal)
    process.kill(process.pid, signal)
  })
}

function fail(reason) {
  console.error(`plant-store: ${reason}`)
  process.exitCode = 1
}
/* c8 ignore stop */
