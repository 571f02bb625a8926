// The order of system calls for a POST: the -wal is on stable storage before the first byte of its answer is written.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { createDirectory } from '../support/engines.ts'
import { request, token } from '../support/service.ts'
import { skipWithout } from '../support/tools.ts'

const cli = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))
const skip = skipWithout('strace')
const plants = 10

test('the -wal is synced before a POST is answered', { skip }, async (t) => {
  const directory = createDirectory(t)
  const trace = join(directory, 'trace')
  const calls = 'trace=fsync,fdatasync,write,writev,sendto,sendmsg,pwrite64'
  const child = spawn('strace', ['-f', '-y', '-e', calls, '-o', trace, process.execPath, cli, 'serve'], {
    env: {
      PATH: process.env.PATH,
      PORT: '0',
      ACCESS_TOKENS: token,
      DATABASE_URL: `file:${join(directory, 'plants.db')}`,
    },
    stdio: ['ignore', 'pipe', 'ignore'],
  })
  t.teardown(() => child.kill('SIGKILL'))
  const ended = once(child, 'exit')
  let url = ''
  for await (const line of createInterface({ input: child.stdout })) {
    url = /listening on (\S+)/.exec(line)?.[1] ?? ''
    if (url) break
  }
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

function nameCall(line: string): string {
  if (/pwrite64\(\d+<[^>]*-wal>/.test(line)) return 'W'
  if (/f(data)?sync\(\d+<[^>]*-wal>\) += 0/.test(line) || /f(data)?sync resumed>\) += 0/.test(line))
    return 'S'
  return /(write|writev|sendto|sendmsg)\(\d+<[^>]*(socket|TCP)[^>]*>.*HTTP\/1\.1 200/.test(line) ? 'A' : ''
}
