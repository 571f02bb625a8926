// Secrets in files, as containers have them: a setting whose name ends with _FILE names the file.
import { mkdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'tap'
import { runCommand } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { endGently, request, startService } from '../support/service.ts'

/** A directory with files of secrets, and the variables that name them. */
function makeSecrets(t: Parameters<typeof createDirectory>[0]) {
  const directory = createDirectory(t)
  const write = (name: string, text: string) => {
    const path = join(directory, name)
    writeFileSync(path, text)
    return path
  }
  return { directory, write }
}

test('the service takes its tokens and its database from files, whatever ends their last lines', async (t) => {
  const { directory, write } = makeSecrets(t)
  const first = 'token-of-a-file-1'
  const second = 'token-of-a-file-2'
  const service = await startService(
    t,
    {
      ACCESS_TOKENS: '',
      ACCESS_TOKENS_FILE: write('tokens', `${first}\n${second}\r\n`),
      DATABASE_URL_FILE: write('url', `file:${join(directory, 'of-file.db')}\r\n`),
    },
    directory,
  )
  endGently(t, service)
  t.match(service.output().stdout, `store: ${join(directory, 'of-file.db')} (created)`)
  for (const token of [first, second])
    t.equal(
      (await request(`${service.url}/plants`, { headers: { authorization: `Bearer ${token}` } })).status,
      200,
    )
})

test('config says that a value is of a file, and hides it; a flag and the environment beat one of .env', async (t) => {
  const { directory, write } = makeSecrets(t)
  const tokens = write('tokens', 'secret-secret-secret\n')
  const url = write('url', 'postgres://plants:secret@127.0.0.1:1/plants\n')
  write('.env', `DATABASE_URL_FILE=${url}\n`)
  const show = async (args: string[], env: NodeJS.ProcessEnv) => {
    const { code, stdout, stderr } = await runCommand(['config', '--json', ...args], env, directory)
    t.same([code, stderr], [0, ''])
    t.notMatch(stdout, 'secret')
    const rows = JSON.parse(stdout) as { name: string; value: string; from: string }[]
    return Object.fromEntries(rows.map(({ name, value, from }) => [name, `${value} (${from})`]))
  }
  t.match(await show([], { ACCESS_TOKENS_FILE: tokens }), {
    ACCESS_TOKENS: '*** (ACCESS_TOKENS_FILE)',
    DATABASE_URL: 'postgres://plants:***@127.0.0.1:1/plants (DATABASE_URL_FILE)',
  })
  t.match(await show([], { DATABASE_URL: 'file:a' }), { DATABASE_URL: 'file:a (environment)' })
  const both = { DATABASE_URL_FILE: url, DATABASE_URL: 'file:a' }
  t.match(await show(['--database-url', 'file:b'], both), { DATABASE_URL: 'file:b (flag)' })
  const list = await runCommand(['token', 'list'], {}, directory)
  t.match(list, { code: 1, stderr: /^plant-store: cannot use the database [^\n]*127\.0\.0\.1:1[^\n]*\n$/ })
  t.notMatch(list.stderr, 'secret')
})

test('a file that cannot be the secret is one clear line, with exit code 1', async (t) => {
  const { directory, write } = makeSecrets(t)
  mkdirSync(join(directory, 'folder'))
  const empty = write('empty', '\n')
  const cases: [env: NodeJS.ProcessEnv, line: string][] = [
    [{ ACCESS_TOKENS_FILE: 'not-there' }, 'ACCESS_TOKENS_FILE cannot be read: ENOENT'],
    [{ DATABASE_URL_FILE: 'folder' }, 'DATABASE_URL_FILE cannot be read: EISDIR'],
    [{ ACCESS_TOKENS_FILE: empty }, `ACCESS_TOKENS_FILE ${empty} is empty`],
    [{ DATABASE_URL_FILE: write('url', 'secret\n') }, 'DATABASE_URL_FILE must start with file:'],
    [
      { DATABASE_URL: 'file:a', DATABASE_URL_FILE: 'url' },
      'DATABASE_URL and DATABASE_URL_FILE are both set: unset one of them',
    ],
  ]
  for (const [env, line] of cases)
    for (const command of ['serve', 'config']) {
      const { code, stdout, stderr } = await runCommand([command], env, directory)
      t.same([code, stdout], [1, ''], line)
      t.match(stderr, new RegExp(`^plant-store: ${line}[^\n]*\n$`))
      t.notMatch(stderr, 'secret')
    }
})
