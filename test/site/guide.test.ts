// Each example of the guide is run against the service, and must get the response that the guide shows.
// UPDATE_GUIDE=1 writes the responses into the guide.
import { readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { type Test, test } from 'tap'
import { parse } from 'yaml'
import { problemTypes } from '../../schemas/problems.ts'
import { createToken } from '../../src/tokens/tokens.ts'
import { root, run } from '../support/processes.ts'
import { type Running, startApp, token } from '../support/service.ts'
import { openFailing, type StoreFault } from '../support/stores.ts'
import { skipWithout } from '../support/tools.ts'
import { compose } from '../support/wire.ts'
import { show } from './guide-examples.ts'
import { type CodeBlock, findCodeBlocks } from './markdown.ts'

const path = `${root}docs/guide.md`
const guide = readFileSync(path, 'utf8')

/** Runs an example as a reader does. */
type Command = (text: string) => [command: string, args: string[]]
const commands: Record<string, Command> = {
  sh: (text) => ['sh', ['-euc', text]],
  js: (text) => [process.execPath, ['--input-type=module', '--eval', text]],
  python: (text) => ['python3', ['-c', text]],
}

/** Faults of the store for responses that no request can cause. */
const provoked: Record<string, StoreFault> = {
  '500 Internal Server Error': 'broken',
  '503 Nothing added': 'nothing-added',
  '503 Outcome unknown': 'unknown',
  '503 Store not readable': 'unread',
  '503 Overloaded': 'overloaded',
}

type Setting = Running & { faults: StoreFault[]; env: NodeJS.ProcessEnv }

async function start(t: Test): Promise<Setting> {
  const { store, faults } = await openFailing(t)
  const running = await startApp(t, '', { store })
  const reader = await createToken(store.tokens, { name: 'reader', scopes: ['plants:read'] })
  return { ...running, faults, env: { BASE_URL: running.url, TOKEN: token, READ_TOKEN: reader } }
}

/** Sends a request, which may be incomplete, on a new connection. Resolves to all that is received. */
async function converse(port: number, request: string | Buffer): Promise<string> {
  const socket = connect(port, '127.0.0.1').setEncoding('utf8')
  socket.write(request)
  return (await socket.toArray()).join('')
}

/** Causes a response by a fault of the store. */
async function provoke({ port, faults }: Setting, fault: StoreFault): Promise<string> {
  faults.push(fault)
  const body = JSON.stringify({ name: 'Alder', tag: 'Alnus' })
  return converse(port, compose({ body, headers: { Connection: 'close' } }))
}

/** Sends pairs of requests until one exceeds the rate limit. */
async function overrun(t: Test): Promise<string> {
  const { store } = await openFailing(t)
  const { port } = await startApp(t, '', { store, env: { RATE_LIMIT: '1/s' } })
  for (let n = 0; n < 100; n++) {
    const last = compose({ headers: { Connection: 'close' } })
    const answers = await converse(port, Buffer.concat([compose(), last]))
    const start = answers.lastIndexOf('HTTP/1.1 429')
    if (start >= 0) return answers.slice(start)
  }
  throw new Error('no request exceeded the rate')
}

/** Runs an example. Resolves to its output as the guide shows it. */
async function follow(t: Test, { language, text }: CodeBlock, env: NodeJS.ProcessEnv): Promise<string> {
  const [command, args] = (commands[language] as Command)(text)
  const { code, stdout, stderr } = await run(command, args, { env })
  t.equal(code, 0, `${text}${stderr}`)
  return stdout.startsWith('HTTP/') ? show(stdout) : stdout
}

const noPython = skipWithout('python3')

/** Returns whether a block is the response to the one before it. */
function isAnswer(block: CodeBlock | undefined, before: CodeBlock): block is CodeBlock {
  const between = guide.slice(before.start + before.text.length, block?.start)
  return block !== undefined && /^```\n```(http|text)\n$/.test(between)
}

test('each example of the guide gets the response that the guide shows', { timeout: 120_000 }, async (t) => {
  const setting = await start(t)
  // The time-out of a head is ten seconds.
  setting.app.server.headersTimeout = 500
  const late = converse(setting.port, 'GET /plants HTTP/1.1\r\nHost: plants.test\r\n')
  const answers: [block: CodeBlock, text: string][] = []
  let before: CodeBlock | undefined
  const blocks = findCodeBlocks(guide)
  for (const [index, block] of blocks.entries()) {
    const { language, heading } = block
    const answer = blocks[index + 1]
    if (before && isAnswer(block, before)) continue
    before = block
    if (language === 'python' && noPython !== false) t.pass(heading, { skip: noPython })
    else if (language in commands) {
      if (t.ok(isAnswer(answer, block), `an answer to ${block.text}`))
        answers.push([answer as CodeBlock, await follow(t, block, setting.env)])
    } else if (language === 'http') {
      const fault = provoked[heading]
      const message = heading.startsWith('429') ? overrun(t) : fault ? provoke(setting, fault) : late
      answers.push([block, show(await message)])
    } else t.equal(heading, 'Before you start', 'every other block is run')
  }
  t.same(setting.faults, [])
  if (process.env.UPDATE_GUIDE === '1') update(answers)
  else for (const [{ heading, text }, seen] of answers) t.equal(text, seen, heading)
})

function update(answers: [block: CodeBlock, text: string][]): void {
  let updated = guide
  for (const [{ start, text }, seen] of answers.reverse())
    updated = updated.slice(0, start) + seen + updated.slice(start + text.length)
  writeFileSync(path, updated)
}

test('the guide shows every status and names every type of problem', async (t) => {
  const { paths, components } = parse(readFileSync(`${root}openapi.yaml`, 'utf8'))
  const statuses = Object.values<{ responses?: object }>(paths['/plants']).flatMap(({ responses = {} }) =>
    Object.keys(responses),
  )
  const shown = [...guide.matchAll(/^HTTP\/1\.1 (\d+)/gm)].map(([, status]) => status)
  t.ok(components && statuses.length > 10)
  const missing = statuses.filter((status) => !shown.includes(status))
  t.same(missing, [])
  for (const name of Object.keys(problemTypes)) t.ok(guide.includes(name), name)
})

test('the commands of README.md print what it shows, with any curl', async (t) => {
  const { url } = await startApp(t)
  const blocks = findCodeBlocks(readFileSync(`${root}README.md`, 'utf8'))
  const { text } = blocks.find((block) => block.text.includes('$TOKEN')) as CodeBlock
  t.notMatch(text, '%header', 'curl before 7.84 lacks this option')
  const script = text.replaceAll('http://127.0.0.1:3000', url).replace(/^export TOKEN=.*/m, '')
  const { stdout } = await run('sh', ['-euc', script], { env: { TOKEN: token } })
  const shown = [...text.matchAll(/^# ([[{H].*)/gm)].map(([, line]) => line as string)
  t.equal(shown.length, 3)
  for (const line of shown) t.match(stdout, line)
})
