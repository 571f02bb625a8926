// The machine: which processors the servers and the load get, and what is written under the results.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, release, totalmem, type } from 'node:os'
import { describeCommit } from '../package/commit.ts'
import { read } from './proc.ts'
import { isInstalled } from './processes.ts'

/** Processors as taskset takes them; undefined where processes cannot be pinned. */
export type Pins = { server: string | undefined; load: string | undefined; all: string | undefined }

/** One processor for the server, the others for the load and this process; all of them for a command by itself. */
export function pinMachine(): Pins {
  const count = availableParallelism()
  if (process.platform !== 'linux' || count < 2 || !isInstalled('taskset'))
    return { server: undefined, load: undefined, all: undefined }
  // The first processor takes most interrupts, so the server gets another one.
  const load = count === 2 ? '0' : `0,2-${count - 1}`
  spawnSync('taskset', ['-c', '-a', '-p', load, String(process.pid)], { stdio: 'ignore' })
  return { server: '1', load, all: `0-${count - 1}` }
}

const packageFile = new URL('../package.json', import.meta.url)
const { dependencies, devDependencies } = JSON.parse(readFileSync(packageFile, 'utf8'))
const versions = { ...dependencies, ...devDependencies }
const peers = ['express', 'hono', '@hono/node-server', 'json-server', 'pg']

/** A name such as "AMD EPYC" is that of several generations; what else Linux says of the processor (proc(5)). */
function describeGeneration(): string {
  const facts = read('/proc/cpuinfo').match(/(?<=^(cpu )?)(family|model|stepping)\s*: .*$/gm) ?? []
  return facts.length > 0 ? ` (${facts.slice(0, 3).join(', ').replaceAll(/\s*:/g, '')})` : ''
}

/** One line per fact. */
export function describeMachine(pins: Pins) {
  return {
    commit: describeCommit() ?? 'unknown',
    processor: `${cpus()[0]?.model.trim() ?? 'unknown'}${describeGeneration()}, ${cpus().length} cores`,
    governor: read('/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor').trim() || 'not visible here',
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    system: `${type()} ${release()}`,
    node: `${process.version}, SQLite ${process.versions.sqlite}`,
    peers: peers.map((name) => `${name} ${versions[name]}`).join(', '),
    pinned: pins.server === undefined ? 'no' : `server on processor ${pins.server}, load on ${pins.load}`,
  }
}
