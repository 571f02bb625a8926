// A change to one place of the code changes responses, the contract and types. fields.test.ts adds fields to plants.
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { type Test, test } from 'tap'
import { parse } from 'yaml'
import { spawnCli } from '../support/commands.ts'
import { createDirectory } from '../support/engines.ts'
import { root, run } from '../support/processes.ts'
import { ask, token } from '../support/service.ts'

/** `to` replaces `from`, which must occur once in the file. */
type Change = { file: string; from: string; to: string }

/** Copies the code and changes the copy. Returns its directory. */
function makeCopy(t: Test, changes: Change[]): string {
  const copy = createDirectory(t)
  for (const path of ['src', 'schemas', 'docs', 'examples', 'package.json', 'tsconfig.json'])
    cpSync(join(root, path), join(copy, path), { recursive: true })
  symlinkSync(join(root, 'node_modules'), join(copy, 'node_modules'))
  for (const { file, from, to } of changes) {
    const parts = readFileSync(join(copy, file), 'utf8').split(from)
    if (parts.length !== 2) throw new Error(`${file} has this ${parts.length - 1} times: ${from}`)
    writeFileSync(join(copy, file), parts.join(to))
  }
  return copy
}

/** Starts the service of a copy. Resolves to a function that sends it a request. */
async function serve(t: Test, copy: string) {
  const env = { PORT: '0', ACCESS_TOKENS: token, DATABASE_URL: `file:${join(copy, 'plants.db')}` }
  const { listening } = spawnCli(t, ['serve'], env, { cwd: copy, program: join(copy, 'src/cli.ts') })
  const url = await listening()
  return (path: string, body?: string) => {
    const headers = { authorization: `Bearer ${token}`, ...(body && { 'content-type': 'application/json' }) }
    return ask(url + path, { ...(body && { method: 'POST', body }), headers })
  }
}

const responseOf = { file: 'schemas/plant.ts', from: "'Plant',\n  Type.Object(returned," }

test('a changed response schema changes the response and the contract', async (t) => {
  const send = await serve(t, makeCopy(t, [{ ...responseOf, to: "'Plant',\n  Type.Object({ name }," }]))
  const added = await send('/plants', '{"name":"Alder","tag":"Alnus"}')
  t.match(added, { status: 200, text: '{"name":"Alder"}' })
  const { components } = parse((await send('/openapi.yaml')).text)
  t.same(Object.keys(components.schemas.Plant.properties), ['name'])
  t.same(Object.keys(components.schemas.NewPlant.properties), ['name', 'tag', 'id'])
})

test('a changed response schema changes the types of the handlers, which cannot send another body', async (t) => {
  const copy = makeCopy(t, [
    { ...responseOf, to: "'Plant',\n  Type.Object({ ...returned, rank: Type.Integer() }," },
    { file: 'src/routes/list-plants.ts', from: 'send(body)\n', to: 'send({ list: body })\n' },
  ])
  const config = { extends: './tsconfig.json', include: ['src/routes'] }
  writeFileSync(join(copy, 'tsconfig.copy.json'), JSON.stringify(config))
  const tsc = [join(root, 'node_modules/typescript/bin/tsc'), '-p', 'tsconfig.copy.json', '--pretty', 'false']
  const { stdout } = await run(process.execPath, tsc, { cwd: copy })
  t.match(stdout, /^src\/routes\/add-plant\.ts.*error/m)
  t.match(stdout, 'rank')
  t.match(stdout, /^src\/routes\/list-plants\.ts.*error.*'list' does not exist/m)
})

test('a query parameter, a description and a response header come from the schemas', async (t) => {
  const query = 'export const ListQuery = Type.Object(\n  {'
  const colour = "Type.String({ description: 'A colour.', maxLength: 9, pattern: '^[a-z]*$' })"
  const noToken = "noToken: define('unauthorized', '"
  const copy = makeCopy(t, [
    { file: 'schemas/plant.ts', from: query, to: `${query}\n colour: Type.Optional(${colour}),` },
    { file: 'schemas/problems.ts', from: noToken, to: `${noToken}Oh. ` },
  ])
  const send = await serve(t, copy)
  for (const name of ['ab', 'cd']) await send('/plants', `{"name":"${name}","tag":""}`)
  const listed = await send('/plants?colour=red&limit=1')
  t.equal(listed.status, 200)
  t.match(listed.headers.get('link'), 'colour=red')
  t.match(JSON.parse((await send('/plants?colour=RED')).text), { errors: [{ parameter: 'colour' }] })
  const { paths } = parse((await send('/openapi.yaml')).text)
  const { parameters, responses } = paths['/plants'].get
  t.match(parameters[0], { in: 'query', name: 'colour', description: 'A colour.' })
  t.match(responses[401].content['application/problem+json'].examples.missing.value.detail, /^Oh\. /)
})
