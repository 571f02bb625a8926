// The log for people: on a terminal, and where LOG_FORMAT asks for it.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { fileURLToPath, pathToFileURL } from 'node:url'
import pino from 'pino'
import { type Test, test } from 'tap'
import { makeMask } from '../../src/logging/secrets.ts'
import { toTextLines } from '../../src/logging/text-lines.ts'
import { Tokens } from '../../src/tokens/tokens.ts'
import { createDirectory } from '../support/engines.ts'
import { noteProcess } from '../support/leftovers.ts'
import { inherited } from '../support/processes.ts'
import { request, type Service, startService, token as usual } from '../support/service.ts'
import { openStore } from '../support/sql-store.ts'
import { skipWithout } from '../support/tools.ts'
import { compose, send } from '../support/wire.ts'

const clock = '\\d\\d:\\d\\d:\\d\\d\\.\\d{3}'

/** Starts a service with a store of a megabyte; `stop` ends it and resolves to the lines of its log. */
async function start(t: Test, env: NodeJS.ProcessEnv = {}) {
  const path = join(createDirectory(t), 'plants.db')
  const DATABASE_URL = pathToFileURL(path).href
  const store = await openStore(DATABASE_URL, { logger: pino({ level: 'silent' }) })
  const item = JSON.stringify({ name: 'x'.repeat(255), tag: 'x'.repeat(255) })
  await store.log.append(Array.from({ length: 2000 }, () => ({ item, id: undefined })))
  const token = await new Tokens(store.tokens).create({ name: 'used' })
  await store.close()
  const service = await startService(t, { DATABASE_URL, LOG_FORMAT: 'text', TRUST_PROXY: 'true', ...env })
  return { service, path, token, stop: () => stopped(t, service) }
}

async function stopped(t: Test, service: Service): Promise<string[]> {
  service.child.kill('SIGTERM')
  t.match(await service.ended, { code: 0 })
  return service.output().stderr.trimEnd().split('\n')
}

test('a request is one readable line, with its size in a suitable unit; it cannot control the terminal', async (t) => {
  const { service, stop } = await start(t)
  const headers = { 'x-request-id': 'mine' }
  for (const query of ['?limit=0', '?limit=10', ''])
    await request(`${service.url}/plants${query}`, { headers })
  await request(`${service.url}/nothing`, { headers })
  const forged = '\x9b31m "\t\x85x'
  await send(
    Number(new URL(service.url).port),
    compose({ target: '/plants?limit=0', headers: { 'X-Forwarded-For': forged } }),
  )
  const all = await stop()
  const lines = all.filter((line) => line.endsWith(' mine'))
  const tail = 'ACCESS_TOKENS 1 127\\.0\\.0\\.1 mine$'
  for (const [index, words] of [
    `^${clock} GET /plants\\?limit=0 200 \\d+\\.\\d ms 2 B ${tail}`,
    `^${clock} GET /plants\\?limit=10 200 \\d+\\.\\d ms 5\\.\\d kB ${tail}`,
    `^${clock} GET /plants 200 \\d+\\.\\d ms 1\\.1 MB ${tail}`,
    `^${clock} GET /nothing 404 \\d+\\.\\d ms \\d+ B not-found 127\\.0\\.0\\.1 mine$`,
  ].entries())
    t.match(lines[index], new RegExp(words))
  t.equal(lines.length, 4)
  const text = all.join('\n')
  t.match(text, / "\S*\\x9b31m \\"\\tÂ\\x85x" /, 'the address is quoted')
  t.notMatch(text, /[\x00-\x09\x0b-\x1f\x7f-\x9f]/)
})

test('any other entry is a line with its details, and the stack of an error below it', async (t) => {
  const { service, path, token, stop } = await start(t, { ACCESS_TOKENS: `${usual},x` })
  const other = new DatabaseSync(path)
  other.exec("CREATE TRIGGER full BEFORE INSERT ON plants BEGIN SELECT raise(ABORT, 'no room'); END")
  other.exec("CREATE TRIGGER fixed BEFORE UPDATE ON tokens BEGIN SELECT raise(ABORT, 'no room'); END")
  other.close()
  await request(`${service.url}/plants?limit=0`, { headers: { authorization: `Bearer ${token}` } })
  const { status } = await request(`${service.url}/plants`, { body: { name: 'a', tag: '' } })
  t.equal(status, 503)
  const lines = await stop()
  t.match(lines[0], new RegExp(`^${clock} WARN ACCESS_TOKENS: token 2 has fewer`))
  const at = lines.findIndex((line) =>
    /WARN the use of a token could not be noted token=\w{8} failures=1$/.test(line),
  )
  t.match(lines[at + 1], /^ {4}StoreUnavailable: .*no room/)
  t.match(lines[at + 2], /^ {8}at /)
  t.ok(lines.some((line) => / WARN the database failed code=\d+ failures=1 reason="no room"$/.test(line)))
  t.match(
    lines.find((line) => / 503 /.test(line)),
    / nothing-added ACCESS_TOKENS 1 /,
  )
  t.match(
    lines.find((line) => /stopping/.test(line)),
    / INFO stopping signal=SIGTERM$/,
  )
})

const cli = fileURLToPath(new URL('../../src/cli.ts', import.meta.url))

/** Runs a service whose stderr is a terminal, and returns what that shows. */
async function onTerminal(t: Test, env: NodeJS.ProcessEnv): Promise<string> {
  const child = spawn('script', ['-qefc', `exec '${process.execPath}' '${cli}' serve`, '/dev/null'], {
    cwd: createDirectory(t),
    env: {
      ...inherited(),
      TERM: 'xterm-256color',
      PORT: '0',
      ACCESS_TOKENS: 'a-token-for-tests',
      ...env,
    },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  noteProcess(child)
  t.teardown(() => child.kill('SIGKILL'))
  let shown = ''
  child.stdout.setEncoding('utf8').on('data', (text) => (shown += text))
  const signal = AbortSignal.timeout(30_000)
  const until = async (words: RegExp) => {
    while (!words.test(shown)) await once(child.stdout, 'data', { signal })
  }
  await until(/listening on http:\S+\s/)
  await request(`${/http:\S+/.exec(shown)?.[0]}/plants`)
  await until(/(GET |"url":")\/plants/)
  const ended = once(child, 'close', { signal })
  // Ctrl-C, as a terminal has it.
  child.stdin.write('\x03')
  await ended
  return shown
}

test('on a terminal the log is text, in colour unless NO_COLOR is set', {
  skip: skipWithout('script'),
}, async (t) => {
  const plain = await onTerminal(t, { NO_COLOR: '1' })
  t.match(plain, new RegExp(`${clock} GET /plants 200 `))
  t.notMatch(plain, /\x1b/)
  t.match(await onTerminal(t, {}), /GET \/plants \x1b\[32m200\x1b\[39m /)
  t.match(await onTerminal(t, { LOG_FORMAT: 'json' }), /"url":"\/plants"/)
})

test('a line names its level', async (t) => {
  for (const [level, name] of [
    [30, 'INFO'],
    [40, 'WARN'],
    [50, 'ERROR'],
  ])
    t.match(toTextLines(`{"level":${level},"time":0,"msg":"a"}\n`), new RegExp(` ${name} +a\n$`, 'i'))
})

test('a line whose number was masked is shown as it is', async (t) => {
  const line = makeMask(['12345678'])('{"level":30,"time":1234567890,"msg":"a"}')
  t.equal(toTextLines(`${line}\n`), '{"level":30,"time":***90,"msg":"a"}\n')
})
