// The changes of CONTRIBUTING's table, made by a script in a copy where the table says: each is seen wherever it should be,
// and breaks nothing. A field of a plant is tried by fields.test.ts.
import { cpSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import tap, { type Test, test } from 'tap'
import { parse } from 'yaml'
import { createDirectory } from '../support/engines.ts'
import { run } from '../support/processes.ts'
import { findAdmin, spawnCli, token } from '../support/service.ts'
import { exchange, send } from '../support/wire.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const read = (path: string) => readFileSync(join(root, path), 'utf8')

type Change = { file: string; from?: string; to: string }

/** What each change takes: a new file, or a text of a file and what follows it then. */
const changes: Record<string, Change[]> = {
  'a query parameter': [
    {
      file: 'schemas/plant.ts',
      from: 'export const ListQuery = Type.Object(\n  {',
      to: "colour: Type.Optional(Type.String({ description: 'A colour.', maxLength: 9, pattern: '^[a-z]*$' })),",
    },
  ],
  'another operation': [
    {
      file: 'src/plants/remove/remove-route.ts',
      to: `import type { FastifyPluginAsync } from 'fastify'
import { NoQuery } from '../../../schemas/plant.ts'
import type { GuardedRoute } from '../../http/access/authentication.ts'

export const removeSchema = {
  operationId: 'removePlants',
  summary: 'Remove all plants',
  description: 'It never ends.',
  querystring: NoQuery,
}

export const removeRoute: FastifyPluginAsync<{ route: GuardedRoute }> = async (app, { route }) => {
  app.route({ ...route, handler() {} })
}
`,
    },
    {
      file: 'src/plants/operations.ts',
      from: "import { listSchema } from './list/list-route.ts'\n",
      to: `import { removeSchema } from './remove/remove-route.ts'
export const remove: Operation = {
  method: 'DELETE', url: '/plants', scope: 'plants:write', late: 'unknown', schema: removeSchema,
}
`,
    },
    { file: 'src/plants/operations.ts', from: 'export const operations = [', to: 'remove, ' },
    {
      file: 'schemas/responses.ts',
      from: 'string, Record<string, ResponseName>> = {',
      to: "removePlants: { ...always, 503: 'AdditionUnavailable' },",
    },
    {
      file: 'src/service/app.ts',
      from: 'route: guarded(add), log, meter })',
      to: '\n  await app.register(removeRoute, { prefix, route: guarded(remove) })',
    },
    {
      file: 'src/service/app.ts',
      from: "import type { Config } from '../config/load-config.ts'\n",
      to: "import { remove } from '../plants/operations.ts'\nimport { removeRoute } from '../plants/remove/remove-route.ts'\n",
    },
  ],
  'a header of every answer': [
    {
      file: 'src/http/answer.ts',
      from: "return { 'x-content-type-options': 'nosniff',",
      to: " 'x-more': 'yes',",
    },
  ],
  'a header that a hook sets': [
    {
      file: 'src/http/guard.ts',
      from: 'const exchange = inFlight.observe(request, reply)',
      to: "\n    reply.header('x-hook', 'yes')",
    },
  ],
  'a setting': [
    {
      file: 'src/config/settings.ts',
      from: 'export const settings = {',
      to: "soil: setting('SOIL kind', String, { description: 'The kind of soil.', default: 'loam' }),",
    },
  ],
  'a metric': [
    {
      file: 'src/http/connection/in-flight.ts',
      from: 'show(meter: Meter): void {',
      to: "\n    meter.gauge('plant_store_more', 'One more.', () => 1)",
    },
  ],
  'a command': [
    { file: 'src/cli/program.ts', from: 'const commands = {', to: "hail: 'Say hello.'," },
    {
      file: 'src/cli/commands/hail.ts',
      to: `import type { Command } from 'commander'
export function define(command: Command): void {
  command.action(() => console.log('hello'))
}
`,
    },
  ],
  'a limit': [{ file: 'src/limits.ts', from: 'export const requestMs = ', to: '800 // ' }],
  'the text of a problem': [
    { file: 'schemas/problems.ts', from: "noToken: say('unauthorized', '", to: 'Oh. ' },
  ],
}

/** Makes a copy with all of the changes. */
function makeCopy(t: Test): string {
  const copy = createDirectory(t)
  for (const path of ['src', 'schemas', 'package.json', 'tsconfig.json'])
    cpSync(join(root, path), join(copy, path), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  for (const [title, steps] of Object.entries(changes))
    for (const { file, from, to } of steps) {
      const path = join(copy, file)
      mkdirSync(dirname(path), { recursive: true })
      if (from === undefined) writeFileSync(path, to)
      else {
        const [head, ...rest] = readFileSync(path, 'utf8').split(from)
        if (rest.length !== 1) throw new Error(`${title}: ${file} has no place for it`)
        writeFileSync(path, head + from + to + rest[0])
      }
    }
  return copy
}

let copy: string

test('every change that the table names is either made here or stands elsewhere', async (t) => {
  copy = makeCopy(tap)
  const [, table = ''] = /\| Change \| Where \|\n(.*?)\n\n/s.exec(read('CONTRIBUTING.md')) ?? []
  const named = [...table.matchAll(/^\| ([^|]*[a-z][^|]*) \|/gm)].map(([, change = '']) => change.trim())
  const elsewhere = ['a field of a plant', 'another engine', 'a content coding']
  const made = Object.keys(changes)
  for (const change of named)
    t.ok(
      made.some((one) => change.startsWith(one)) || elsewhere.includes(change) || /docs page/.test(change),
      change,
    )
})

test('types and rooms are as they were', async (t) => {
  const node = (path: string, ...args: string[]) =>
    run(process.execPath, [join(root, path), ...args], { cwd: copy })
  writeFileSync(
    join(copy, 'tsconfig.copy.json'),
    JSON.stringify({ extends: './tsconfig.json', include: ['src', 'schemas'] }),
  )
  const good = { code: 0, stdout: '', stderr: '' }
  t.same(await node('node_modules/typescript/bin/tsc', '-p', 'tsconfig.copy.json'), good)
  t.same(await node('test/run/house.ts'), good)
})

test('a command and a setting are there', async (t) => {
  const say = async (...args: string[]) => {
    const { ended, output } = spawnCli(t, args, { SOIL: 'sand' }, copy, join(copy, 'src/cli.ts'))
    t.match(await ended, { code: 0 })
    return output().stdout
  }
  t.equal(await say('hail'), 'hello\n')
  t.match(await say('--help'), /hail +Say hello\./)
  t.match(await say('serve', '--help'), /--soil <kind> +The kind of soil\./)
  t.match(await say('config'), /SOIL +sand/)
})

test('a served copy has the rest', async (t) => {
  const env = {
    ...{ PORT: '0', ACCESS_TOKENS: token, ADMIN_PORT: '0', CORS_ORIGIN: '*' },
    DATABASE_URL: `file:${join(copy, 'plants.db')}`,
  }
  const service = spawnCli(t, ['serve'], env, copy, join(copy, 'src/cli.ts'))
  const admin = await findAdmin(service)
  const { port } = new URL(await service.listening)
  const auth = `Host: a\r\nAuthorization: Bearer ${token}\r\n`
  const ask = (line: string, more = auth) => send(Number(port), `${line} HTTP/1.1\r\n${more}\r\n`)

  await t.test('a query parameter is part of the contract, of links and of nothing else', async (t) => {
    const post = (name: string) =>
      ask(
        'POST /plants',
        `${auth}Content-Type: application/json\r\nContent-Length: 22\r\n\r\n{"name":"${name}","tag":""}`,
      )
    for (const name of ['ab', 'cd']) t.equal((await post(name)).status, 200)
    const listed = await ask('GET /plants?colour=red&limit=1')
    t.equal(listed.status, 200)
    t.match(listed.headers.get('link'), /^<\/plants\?after=[\w-]+&colour=red&limit=1>; rel="next"$/)
    t.match((await ask('GET /plants?limit=1')).headers.get('link'), /\?after=[\w-]+&limit=1>/)
    t.match(JSON.parse((await ask('GET /plants?colour=RED')).text), { errors: [{ parameter: 'colour' }] })
  })

  await t.test(
    'another operation is allowed, to other origins as well, and unknown when it hangs',
    async (t) => {
      t.equal((await ask('OPTIONS /plants')).headers.get('allow'), 'GET, HEAD, DELETE, POST')
      t.equal((await ask('PUT /plants')).headers.get('allow'), 'GET, HEAD, DELETE, POST')
      const preflight = 'Host: a\r\nOrigin: https://a.test\r\nAccess-Control-Request-Method: DELETE\r\n'
      const allowed = (await ask('OPTIONS /plants', preflight)).headers.get('access-control-allow-methods')
      t.match(allowed, /\bDELETE\b/)
      const [late] = await exchange(Number(port), `DELETE /plants HTTP/1.1\r\n${auth}\r\n`)
      t.match(JSON.parse(String(late?.text)), { status: 503, type: '/problems/outcome-unknown' })
    },
  )

  await t.test('a header of every answer is on every answer', async (t) => {
    const answers = {
      200: await ask('GET /plants'),
      304: await ask('GET /plants', `${auth}If-None-Match: *\r\n`),
      400: await ask('GET /plants?x=1'),
      401: await ask('GET /plants', 'Host: a\r\n'),
      404: await ask('GET /nothing'),
    }
    for (const [status, answer] of Object.entries(answers)) {
      t.equal(answer.status, Number(status))
      t.match([answer.headers.get('x-more'), answer.headers.get('x-hook')], ['yes', 'yes'], status)
    }
    t.equal((await ask('FOO /plants')).headers.get('x-more'), 'yes')
    t.match(answers[401].text, 'Oh. ')
  })

  await t.test('the contract has all of it', async (t) => {
    const { paths, components } = parse((await ask('GET /openapi.yaml', 'Host: a\r\n')).text)
    t.same(Object.keys(paths['/plants']).sort(), ['delete', 'get', 'head', 'post'])
    t.match(paths['/plants'].delete, { operationId: 'removePlants', responses: { 503: {} } })
    t.match(components.parameters.colour, { in: 'query', required: false })
  })

  await t.test('a metric is published, and one without a row in observe.md is found', async (t) => {
    const text = await (await fetch(`${admin}/metrics`)).text()
    t.same(findUndocumented(text), ['plant_store_more'])
  })
})

/** Metrics of ours that docs/observe.md has no row for. A row may give the ends of further names alone: `_bytes`. */
function findUndocumented(metrics: string): string[] {
  const rows = [...read('docs/observe.md').matchAll(/^\| (`[^|]*`) \|/gm)].map(([, names = '']) =>
    [...names.matchAll(/`(\w+)`/g)].map(([, name = '']) => name),
  )
  const isTold = (name: string) =>
    rows.some(([first = '', ...others]) =>
      [first, ...others].some(
        (one) =>
          one === name ||
          (one.startsWith('_') && name.endsWith(one) && first.startsWith(name.slice(0, -one.length))),
      ),
    )
  const names = [...metrics.matchAll(/^# HELP ((?:plant_store|http)_\w+)/gm)].map(([, name = '']) => name)
  return names.filter((name) => !isTold(name))
}

test('each metric of a service has a row in observe.md', async (t) => {
  const issuer = { OIDC_ISSUER: 'http://127.0.0.1:9', OIDC_AUDIENCE: 'x' }
  const env = {
    ...{
      PORT: '0',
      ACCESS_TOKENS: token,
      ADMIN_PORT: '0',
      OTEL_EXPORTER_OTLP_ENDPOINT: 'http://127.0.0.1:9',
    },
    ...{ ...issuer, DATABASE_URL: `file:${join(createDirectory(t), 'plants.db')}` },
  }
  const service = spawnCli(t, ['serve'], env)
  const admin = await findAdmin(service)
  await service.listening
  t.same(findUndocumented(await (await fetch(`${admin}/metrics`)).text()), [])
})
