#!/usr/bin/env node
// Starts the command line on a Node that can run it: this one, or the one that npm installed beside it.
// Plain JavaScript that old Nodes understand, so that they can say what is missing.
/* c8 ignore start: it runs on Nodes that the tests' instrument does not know; what it does they show nevertheless. */
import { existsSync } from 'node:fs'
import module from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const needed = [24, 15]
/**
 * A new generation of objects this large (in MiB) is collected seldom, and by then most requests are over. A signal opens
 * no debugger.
 */
const flags = ['--min-semi-space-size=8', '--disable-sigusr1']
const require = module.createRequire(import.meta.url)
/** A clone runs its sources, a package has none. */
const source = fileURLToPath(new URL('../src/cli.ts', import.meta.url))
const cli = existsSync(source) ? source : fileURLToPath(new URL('../dist/src/cli.js', import.meta.url))

/**
 * What was compiled is kept for the next start. Whoever may write there may change the packages, too; where Node would
 * make folders that everybody may write, nothing is kept. Of code that comes from it nobody knows what a test has covered.
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

/** The Node of this platform that npm installed. */
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
  // Becoming the service leaves nothing between it and whoever started this. Node warns of it on the next turn only.
  if (isNewEnough && process.execve && process.platform !== 'win32')
    process.execve(runtime, [runtime, ...args], process.env)
  else await run(runtime, args)
}

/** Nothing has to be started where the flags are given already, as by npm start. */
async function load() {
  if (process.env.NODE_COMPILE_CACHE) module.enableCompileCache(process.env.NODE_COMPILE_CACHE)
  await import(pathToFileURL(cli))
}

/** The channel closes when this process ends, however it does; src/cli.ts stops then. */
async function run(runtime, args) {
  // This Node may know no flag that keeps the signal from opening a debugger.
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
