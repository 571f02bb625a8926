#!/usr/bin/env node
// Starts the command line on a Node that can run it: this one, or the one that npm installed beside the project.
// Plain JavaScript that any Node understands.
/* c8 ignore start: it runs on Nodes that the tests' instrument does not know; what it does they show nevertheless. */
import { spawn } from 'node:child_process'
import { createRequire } from 'node:module'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'

const needed = [24, 15]
/** A new generation of objects this large (in MiB) is collected seldom, and by then most requests are over. */
const flags = ['--min-semi-space-size=8']
const cli = fileURLToPath(new URL('../src/cli.ts', import.meta.url))
const [major, minor] = process.versions.node.split('.').map(Number)

const isNewEnough = major > needed[0] || (major === needed[0] && minor >= needed[1])
const runtime = isNewEnough ? process.execPath : findRuntime()
if (runtime) run(runtime)
else fail()

function findRuntime() {
  const require = createRequire(import.meta.url)
  const system = process.platform === 'win32' ? 'win' : process.platform
  for (const name of [`node-${system}-${process.arch}`, `node-bin-${system}-${process.arch}`]) {
    try {
      const manifest = require.resolve(`${name}/package.json`)
      return join(dirname(manifest), 'bin', process.platform === 'win32' ? 'node.exe' : 'node')
    } catch {
      // Not the package of this platform.
    }
  }
  return undefined
}

function run(runtime) {
  const child = spawn(runtime, [...flags, cli, ...process.argv.slice(2)], { stdio: 'inherit' })
  for (const signal of ['SIGTERM', 'SIGINT', 'SIGHUP']) process.on(signal, () => child.kill(signal))
  child.on('exit', (code, signal) => {
    process.exitCode = code ?? 128 + (signal === 'SIGKILL' ? 9 : 15)
  })
}

function fail() {
  console.error(
    `plant-store: Node ${needed.join('.')} or newer is needed, this is ${process.version}; npm ci brings one along`,
  )
  process.exitCode = 1
}
/* c8 ignore stop */
