// The PostgreSQL server of a run of tap: the first test file that needs it starts this in the background, and it ends
// soon after the run. `node shared-postgres.ts FOLDER PID`, where PID is the runner.
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import { startServer } from './postgres.ts'
import { isRunning } from './processes.ts'

const [folder = '', pid] = process.argv.slice(2)
const pauseMs = 200

const server = await startServer()
writeFileSync(join(folder, 'draft'), String(server.port))
renameSync(join(folder, 'draft'), join(folder, 'port'))
while (isRunning(Number(pid))) await sleep(pauseMs)
server.destroy()
rmSync(folder, { recursive: true, force: true })
