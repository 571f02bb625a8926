// Finds a suitable Node, and runs a file on it: this Node, or the one that npm installed for this platform, even if npm
// did not link it. Plain JavaScript, so that even an old Node can report what is missing.
/* c8 ignore start: tests run this on several Nodes, most of which cannot measure its coverage */
import module from 'node:module'
import { dirname, isAbsolute, join } from 'node:path'

const needed = [24, 15]
/** Prevents SIGUSR1 from opening a debugger. */
const noDebugger = '--disable-sigusr1'
const require = module.createRequire(import.meta.url)
const system = process.platform === 'win32' ? 'win' : process.platform
const [major, minor] = process.versions.node.split('.').map(Number)
const isNewEnough = major > needed[0] || (major === needed[0] && minor >= needed[1])

/**
 * Returns the path of a suitable Node: with `isPinned` preferably the one that npm installed, otherwise preferably this
 * one. Without a suitable Node, or without packages: reports that, sets exit code 1, and returns undefined.
 */
export function findRuntime(isPinned) {
  const own = isNewEnough ? process.execPath : undefined
  const runtime = isPinned ? (findInstalled() ?? own) : (own ?? findInstalled())
  if (runtime && isInstalled('fastify')) return runtime
  fail(
    isInstalled('fastify')
      ? `Node ${needed.join('.')} or newer is required, but this is ${process.version}; ` +
          'npm installs it as an optional dependency: do not omit those'
      : 'dependencies are not installed; run: npm ci',
  )
}

function findInstalled() {
  const name = [`node-${system}-${process.arch}`, `node-bin-${system}-${process.arch}`].find(isInstalled)
  return name && join(dirname(locate(name)), 'bin', system === 'win' ? 'node.exe' : 'node')
}

function isInstalled(name) {
  return locate(name) !== undefined
}

function locate(name) {
  try {
    return require.resolve(`${name}/package.json`)
  } catch {
    return undefined
  }
}

/**
 * Runs a file with arguments: in this process if it is that Node with these flags; otherwise in a process that replaces
 * this one, or in a child.
 */
export async function launch(runtime, flags, [file, ...args]) {
  const lacking = flags.filter((flag) => !process.execArgv.includes(flag))
  if (runtime === process.execPath && lacking.every((flag) => flag === noDebugger)) {
    if (lacking.length > 0) ignoreDebugger()
    process.argv.splice(1, Infinity, file, ...args)
    if (process.env.NODE_COMPILE_CACHE) module.enableCompileCache(process.env.NODE_COMPILE_CACHE)
    return module.runMain()
  }
  const all = [...flags, file, ...args]
  // After a replacement, no launcher is between the service and its parent. Node's warning would be printed later.
  // Without /proc, Node does not know its own path, and execve does not search PATH.
  if (process.execve && isAbsolute(runtime) && system !== 'win')
    process.execve(runtime, [runtime, ...all], process.env)
  else await run(runtime, all)
}

/** Starts Node as a child. When this process ends in any way, the IPC channel closes, and src/cli.ts exits. */
async function run(runtime, args) {
  ignoreDebugger()
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

/** Has the effect of the flag, even on a Node that lacks it. */
function ignoreDebugger() {
  process.on('SIGUSR1', () => {})
}

function fail(reason) {
  console.error(`plant-store: ${reason}`)
  process.exitCode = 1
}
/* c8 ignore stop */
