// The order of system calls: the -wal is on stable storage before the first byte of an answer to a POST is written, and
// what a store is found with before it is believed.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { cli } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { spawnProgram } from '../support/processes.ts'
import { request, startService, token } from '../support/service.ts'
import { skipWithout } from '../support/tools.ts'

const skip = skipWithout('strace')
const plants = 10

test('the -wal is synced before a POST is answered', { skip }, async (t) => {
  const directory = createDirectory(t)
  const trace = join(directory, 'trace')
  const calls = 'trace=fsync,fdatasync,write,writev,sendto,sendmsg,pwrite64'
  const args = ['-f', '-y', '-e', calls, '-o', trace, process.execPath, cli, 'serve']
  const DATABASE_URL = `file:${join(directory, 'plants.db')}`
  const env = { PATH: process.env.PATH, PORT: '0', ACCESS_TOKENS: token, DATABASE_URL }
  const { child, ended, listening } = spawnProgram(t, 'strace', args, { env })
  const url = await listening()
  for (let n = 0; n < plants; n++)
    t.equal((await request(`${url}/plants`, { body: { name: `${n}`, tag: '' } })).status, 200)
  // strace passes no signal on: the service is its child.
  const pid = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim()
  process.kill(Number(pid), 'SIGTERM')
  await ended
  // One letter per call: a write into the -wal, the return of a sync of it, an answer.
  const order = readFileSync(trace, 'utf8').split('\n').map(nameCall).join('').replace(/W+/g, 'W')
  t.match(order, new RegExp(`(WSA){${plants}}`))
  t.equal(order.match(/A/g)?.length, plants)
})

/** The calls of a command: a write into the -wal is W, a sync of it S, and one of the database D. */
async function traceCommand(t: Test, path: string, ...args: string[]): Promise<string> {
  const trace = join(createDirectory(t), 'trace')
  const strace = ['-f', '-y', '-e', 'trace=fsync,fdatasync,pwrite64', '-o', trace, process.execPath, cli]
  const env = { PATH: process.env.PATH, DATABASE_URL: `file:${path}` }
  t.match(await spawnProgram(t, 'strace', [...strace, ...args], { env }).ended, { code: 0 })
  const calls = readFileSync(trace, 'utf8').matchAll(/(pwrite64|f(?:data)?sync)\(\d+<[^>]*\.db(-wal)?>/g)
  const letters = [...calls].map(([, call, log]) => (call === 'pwrite64' ? log && 'W' : log ? 'S' : 'D'))
  return letters.join('').replace(/W+/g, 'W')
}

test('a command that reads beside a service syncs the -wal before it believes it', { skip }, async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  const { url } = await startService(t, { DATABASE_URL: `file:${path}` })
  t.equal((await request(`${url}/plants`, { body: { name: 'a', tag: '' } })).status, 200)
  t.match(await traceCommand(t, path, 'export', '-'), 'S')
})

function nameCall(line: string): string {
  if (/pwrite64\(\d+<[^>]*-wal>/.test(line)) return 'W'
  if (/f(data)?sync\(\d+<[^>]*-wal>\) += 0/.test(line) || /f(data)?sync resumed>\) += 0/.test(line))
    return 'S'
  return /(write|writev|sendto|sendmsg)\(\d+<[^>]*(socket|TCP)[^>]*>.*HTTP\/1\.1 200/.test(line) ? 'A' : ''
}
