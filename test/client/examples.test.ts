// The programs in examples/ work, even while the network and the service fail.
import tap, { before, type Test, test } from 'tap'
import { sqlite } from '../support/engines.ts'
import { root, run } from '../support/processes.ts'
import { request, startApp, token } from '../support/service.ts'
import { add } from '../support/stores.ts'
import { skipWithout, type Tool } from '../support/tools.ts'
import { type Fault, type Front, startFront } from './front.ts'

const path = (name: string) => `${root}examples/${name}`

const programs: [name: string, command: string[], ...tools: Tool[]][] = [
  ['add-and-list.sh', ['sh'], 'curl'],
  ['javascript.mjs', [process.execPath]],
  ['python.py', ['python3'], 'python3'],
  ['go.go', ['go', 'run'], 'go'],
]
const added = ['Black alder', 'Grey alder']
/** Few enough for two pages of the programs, even with the plants that each of them adds. */
const earlier = 101
const basePath = '/store/v1'

/** A service under a base path, with plants in it. */
let url: string
before(async () => {
  const running = await startApp(tap, await sqlite.createDatabase(tap), { env: { BASE_PATH: basePath } })
  url = running.url
  await add(running.store, ...Array.from({ length: earlier }, (_, n) => `Oak ${n}`))
})

async function listNames(): Promise<string[]> {
  const plants = (await request(`${url}${basePath}/plants`)).json() as { name: string }[]
  return plants.map(({ name }) => name)
}

/** The service behind a front. */
async function start(t: Test, faults: Fault[]): Promise<Front> {
  const front = await startFront(t, url)
  front.faults.push(...faults)
  return front
}

for (const [name, [command = '', ...before], ...tools] of programs) {
  const skip = skipWithout(...tools)
  const runProgram = (env: NodeJS.ProcessEnv) => run(command, [...before, path(name)], { env })

  test(`${name} adds each plant once and reads all pages despite failures`, { skip }, async (t) => {
    // curl gives up when a date has passed.
    const when = command === 'sh' ? '0' : new Date(0).toUTCString()
    const busy = { status: 503, headers: { 'retry-after': when }, body: '{}' }
    const { length: held } = await listNames()
    const front = await start(t, ['unanswered', busy, undefined, { status: 408 }, undefined, 'half'])
    const { code, stdout, stderr } = await runProgram({ BASE_URL: front.url + basePath, TOKEN: token })
    t.equal(code, 0, stderr)
    const all = await listNames()
    t.same(all.slice(held), added)
    t.same(front.faults, [])
    const unprinted = all.filter((plant) => !new RegExp(`${plant}\\b`).test(stdout))
    t.same(unprinted, [], 'all plants are printed')
    const urls = front.seen.map(({ method, url }) => `${method} ${url.replace(/after=[^&]+/, 'after=…')}`)
    t.match(urls.at(-2), `GET ${basePath}/plants?limit=100`)
    t.match(urls.at(-1), `GET ${basePath}/plants?limit=100&after=…`)
    const ids = front.seen.flatMap(({ body }) => (body ? [JSON.parse(body).id] : []))
    t.equal(ids.length, 5, 'three attempts for the first plant, two for the second')
    t.equal(new Set(ids).size, 2)
  })

  test(`${name} prints why it was refused, does not retry, and follows no redirect`, { skip }, async (t) => {
    const moved = { status: 302, headers: { location: '/elsewhere' }, body: 'moved' }
    const fail = async (TOKEN: string, faults: Fault[], reason: RegExp) => {
      const front = await start(t, faults)
      const { code, stderr } = await runProgram({ BASE_URL: front.url + basePath, TOKEN })
      t.not(code, 0)
      t.match(stderr, reason)
      return front.seen.map(({ method, url }) => `${method} ${url}`)
    }
    const [refused, redirected] = await Promise.all([
      fail('wrong', [], /The token is not valid/),
      fail(token, Array(5).fill(moved), /moved|redirect|302/),
    ])
    t.equal(refused?.length, 1)
    t.same(new Set(redirected), new Set([`POST ${basePath}/plants`]))
  })
}
