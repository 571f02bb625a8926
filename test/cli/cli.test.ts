// The first start of the service, and the contract as a file.
import { execFile } from 'node:child_process'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { test } from 'tap'
import { runCommand } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { request, startService } from '../support/service.ts'

test('the first start prints one token and a working curl line; the second prints none', async (t) => {
  const directory = createDirectory(t)
  const env = { ACCESS_TOKENS: '', BASE_PATH: '/v1' }
  const first = await startService(t, env, directory)
  const { stdout } = first.output()
  const [, printed] = /^ {2}(plant_\S+)$/m.exec(stdout) ?? []
  const [, line] = /^ {2}(curl .*)$/m.exec(stdout) ?? []
  t.ok(printed)
  t.equal(stdout.match(/plant_\w+/g)?.length, 2, 'the token is printed alone and in the curl line')
  const headers = { authorization: `Bearer ${printed}` }
  await request(`${first.url}/v1/plants`, { body: { name: 'a', tag: '' }, headers })
  t.equal((await promisify(execFile)('sh', ['-c', line as string])).stdout, '[{"name":"a","tag":""}]')
  t.match(await first.stop(), { code: 0 })

  const second = await startService(t, env, directory)
  t.match(second.output().stdout, /^store: [^\n]+\nvalid tokens: 1\. [^\n]+\nlistening on http:\/\/\S+\n$/)
  t.equal((await request(`${second.url}/v1/plants`, { headers })).text, '[{"name":"a","tag":""}]')
  const list = JSON.parse((await runCommand(['token', 'list', '--json'], {}, directory)).stdout)
  t.match(list, [{ name: 'first', scopes: ['plants:read', 'plants:write'], expires: null }])
})

test('creates no token if ACCESS_TOKENS is set', async (t) => {
  const directory = createDirectory(t)
  const service = await startService(t, {}, directory)
  t.match(service.output().stdout, /^store: [^\n]+\nlistening on \S+\n$/)
  t.equal((await runCommand(['token', 'list', '--json'], {}, directory)).stdout, '[]\n')
})

test('openapi prints the document as YAML or JSON', async (t) => {
  const directory = createDirectory(t)
  const run = (args: string[], env = {}) => runCommand(['openapi', ...args], env, directory)
  const json = await run(['--json'], { BASE_PATH: '/v1' })
  t.match(JSON.parse(json.stdout), { openapi: '3.1.0', servers: [{ url: '/v1' }] })
  writeFileSync(join(directory, '.env'), 'BASE_PATH=/of-file\nPORT=none\nOIDC_ISSUER=https://id.example\n')
  const { stdout } = await run([])
  t.match(stdout, 'url: /of-file\n')
  t.notMatch(stdout, /openIdConnect/, 'no other setting changes the document')
  t.notOk(existsSync(join(directory, 'data')))
})
