// One command from its start to its end: how long it takes, and what it uses.
import { once } from 'node:events'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { text } from 'node:stream/consumers'
import { type Bench, root } from '../bench.ts'
import { spawnPinned } from '../processes.ts'

/** `cpuUs` and `peakMiB` are NaN for a program that cannot say. */
export type Run = { ms: number; cpuUs: number; peakMiB: number; stdout: string }

/** Runs `plant-store ARGUMENTS` on the database at a URL, on all processors. */
export function runPlantStore(bench: Bench, databaseUrl: string, args: string[]): Promise<Run> {
  const usage = join(root, 'bench/bulk/usage.ts')
  const node = [process.execPath, '--min-semi-space-size=8', '--import', usage]
  return runCommand(bench, [...node, join(root, 'src/cli.ts'), ...args], { DATABASE_URL: databaseUrl })
}

/** Throws when the command fails. */
export async function runCommand(bench: Bench, command: string[], env: NodeJS.ProcessEnv = {}): Promise<Run> {
  const start = performance.now()
  const child = spawnPinned(command, {
    cpus: bench.pins.all,
    env: { PATH: process.env.PATH, ...env },
    stdio: ['ignore', 'pipe', 'pipe', 'pipe'],
  })
  const outputs = child.stdio.slice(1).map((stream) => text(stream as Readable))
  const [code] = await once(child, 'exit')
  const ms = performance.now() - start
  const [stdout = '', stderr = '', usage] = await Promise.all(outputs)
  if (code !== 0)
    throw new Error(`${command.slice(0, 8).join(' ')} ended with ${code}: ${stderr.slice(0, 500)}`)
  const { cpuUs = Number.NaN, peakMiB = Number.NaN } = usage ? JSON.parse(usage) : {}
  return { ms, cpuUs, peakMiB, stdout }
}
