// The service while an import runs on its database: how long its clients wait. An answer that is not 200 ends the bench.
import type { ChildProcess } from 'node:child_process'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { setTimeout as sleep } from 'node:timers/promises'
import { fileURLToPath } from 'node:url'
import { type Bench, root } from '../bench.ts'
import { Inputs } from '../bulk/inputs.ts'
import { addPlant, getList, startPlantStore } from '../contenders.ts'
import { type Findings, makeRows } from '../findings.ts'
import { spawnPinned, stop } from '../processes.ts'
import { measure, measureRounds } from '../rounds.ts'
import { makeStore } from '../stores.ts'
import type { Scenario } from './scenario.ts'

const pollMs = 10

const works = [
  { title: 'GET ?limit=100, 32 connections', request: getList, connections: 32, target: 50, aim: 10 },
  { title: 'POST, 64 connections', request: addPlant, connections: 64, target: 250, aim: 100 },
]

export const besideImport: Scenario = {
  name: 'beside-import',
  title: 'the service beside an import',
  async run(bench) {
    const databaseUrl = await makeStore(bench, 1000)
    const server = await startPlantStore(bench, { databaseUrl })
    await measureRounds(bench, [{ server, request: getList, connections: 32 }])
    const file = new Inputs(bench).file('ndjson', bench.options.listPlants)
    const findings: Findings = { rows: [], goals: [] }
    for (const { title, request, connections, target, aim } of works) {
      const work = `${title}, beside an import`
      bench.progress.step(0.5, work)
      const child = await startImport(bench, file, databaseUrl)
      const round = await measure(bench, { server, request, connections }, bench.options.roundMs)
      if (child.exitCode !== null) throw new Error('the import was over too early')
      await stop(child)
      findings.rows.push(...makeRows(work, [server], [[round]], undefined))
      findings.goals.push({ work, figure: 'p99', value: round.p99Ms, unit: ' ms', target, aim, more: false })
    }
    return findings
  },
}

/** Resolves when the first plants are in. */
async function startImport(bench: Bench, file: string, databaseUrl: string): Promise<ChildProcess> {
  const db = new DatabaseSync(fileURLToPath(databaseUrl), { readOnly: true })
  const select = db.prepare('SELECT max(position) AS head FROM plants')
  const before = Number(select.get()?.head)
  const env = { PATH: process.env.PATH, DATABASE_URL: databaseUrl }
  const command = [process.execPath, join(root, 'src/cli.ts'), 'import', file, '--quiet']
  const child = spawnPinned(command, { cpus: bench.pins.all, env, stdio: 'ignore' })
  while (Number(select.get()?.head) === before) {
    if (child.exitCode !== null) throw new Error('the import failed')
    await sleep(pollMs)
  }
  db.close()
  return child
}
