// System calls: the -wal is synced before a POST is answered, and before a command reads it.
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
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
  // strace forwards no signals, so they go to its child, the service.
  const pid = readFileSync(`/proc/${child.pid}/task/${child.pid}/children`, 'utf8').trim()
  process.kill(Number(pid), 'SIGTERM')
  await ended
  // One letter per call: a write into the -wal, the return of a sync of it, an answer.
  const order = readFileSync(trace, 'utf8').split('\n').map(nameCall).join('').replace(/W+/g, 'W')
  t.match(order, new RegExp(`(WSA){${plants}}`))
  t.equal(order.match(/A/g)?.length, plants)
})

test('a command that reads beside a service syncs the -wal before it reads', { skip }, async (t) => {
  const directory = createDirectory(t)
  const [path, trace] = [join(directory, 'plants.db'), join(directory, 'trace')]
  const { url } = await startService(t, { DATABASE_URL: `file:${path}` })
  t.equal((await request(`${url}/plants`, { body: { name: 'a', tag: '' } })).status, 200)
  const args = ['-f', '-y', '-e', 'trace=fsync', '-o', trace, process.execPath, cli, 'export', '-']
  const env = { PATH: process.env.PATH, DATABASE_URL: `file:${path}` }
  t.match(await spawnProgram(t, 'strace', args, { env }).ended, { code: 0 })
  t.match(readFileSync(trace, 'utf8'), `<${path}-wal>`)
})

function nameCall(line: string): string {
  if (/pwrite64\(\d+<[^>]*-wal>/.test(line)) return 'W'
  if (/f(data)?sync\(\d+<[^>]*-wal>\) += 0/.test(line) || /f(data)?sync resumed>\) += 0/.test(line))
    return 'S'
  return /(write|writev|sendto|sendmsg)\(\d+<[^>]*(socket|TCP)[^>]*>.*HTTP\/1\.1 200/.test(line) ? 'A' : ''
}
