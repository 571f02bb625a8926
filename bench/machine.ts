// The machine: which processors the servers and the load get, and what is written under the results.
import { spawnSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { availableParallelism, cpus, loadavg, release, totalmem, type } from 'node:os'
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

const { dependencies, devDependencies } = JSON.parse(
  readFileSync(new URL('../package.json', import.meta.url), 'utf8'),
) as Record<string, Record<string, string>>
const versions: Record<string, string> = { ...dependencies, ...devDependencies }
const peers = ['express', 'hono', '@hono/node-server', 'json-server', 'pg']

/** What to say of a machine on which others work too; undefined when it is quiet. Call it before any load. */
export function describeNeighbours(): string | undefined {
  const load = loadavg()[0] ?? 0
  // Up to half a processor is what the last minute's shell commands leave.
  if (load < 0.5) return undefined
  return `The machine was busy with other work (load average ${load.toFixed(1)} at the start): rates and times suffer from it, CPU per request less.`
}

/** A name such as "AMD EPYC" is that of several generations; what else Linux says of the processor (proc(5)). */
function describeGeneration(): string {
  const text = readOr('/proc/cpuinfo', '')
  const facts = ['cpu family', 'model', 'stepping'].flatMap((name) => {
    const value = new RegExp(`^${name}\\s*: (.*)$`, 'm').exec(text)?.[1]
    return value ? `${name.replace('cpu ', '')} ${value}` : []
  })
  return facts.length > 0 ? ` (${facts.join(', ')})` : ''
}

function readOr(path: string, other: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return other
  }
}

/** One line a fact. */
export function describeMachine(pins: Pins): Record<string, string> {
  return {
    processor: `${cpus()[0]?.model.trim() ?? 'unknown'}${describeGeneration()}, ${cpus().length} cores`,
    governor: readOr('/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor', 'not visible here'),
    memory: `${Math.round(totalmem() / 2 ** 30)} GiB`,
    system: `${type()} ${release()}`,
    node: `${process.version}, SQLite ${process.versions.sqlite}`,
    peers: peers.map((name) => `${name} ${versions[name]}`).join(', '),
    pinned: pins.server === undefined ? 'no' : `server on processor ${pins.server}, load on ${pins.load}`,
  }
}
