// The packed client: installed in an empty project, compiled and run.
import { readFileSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import tap, { test } from 'tap'
import { findCodeBlocks } from '../site/markdown.ts'
import { createDirectory } from '../support/engines.ts'
import { root, run } from '../support/processes.ts'
import { request, startApp, token } from '../support/service.ts'

const alder = { name: 'Black alder', tag: 'Alnus glutinosa' }
const maxInstallBytes = 72 * 1024

/** The project in which the client is installed. */
const project = createDirectory(tap)

test('the client is packed and installed, offline', async (t) => {
  const pack = ['pack', '--json', '-w', 'client', '--pack-destination', project]
  const packed = await run('npm', pack, { cwd: root })
  t.equal(packed.code, 0, packed.stderr)
  const [{ filename, files, unpackedSize }] = JSON.parse(packed.stdout.slice(packed.stdout.indexOf('[\n')))
  const paths: string[] = files.map(({ path }: { path: string }) => path)
  t.same(paths.filter((path) => !path.startsWith('dist/')).sort(), ['LICENSE', 'README.md', 'package.json'])
  t.ok(unpackedSize < maxInstallBytes, `${unpackedSize} bytes installed`)
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }')
  const install = ['install', '--offline', '--ignore-scripts', `./${filename}`]
  const installed = await run('npm', install, { cwd: project })
  t.equal(installed.code, 0, installed.stderr)
})

const program = `
import { PlantStore, PlantStoreError, type NewPlant, type Plant, type PlantPage } from 'plant-store-client'

const { BASE_URL = '', TOKEN = '' } = process.env
const store = new PlantStore({ baseUrl: BASE_URL, token: TOKEN, retry: { attempts: 2 } })
const plant: NewPlant = { name: 'Black alder', tag: 'Alnus glutinosa', id: 7 }
const added: Plant = await store.add(plant)
// @ts-expect-error: a tag is required
const wrong: NewPlant = { name: 'Alder' }
// @ts-expect-error: an id is a number
void (() => store.add({ name: 'Alder', tag: '', id: '7' }))
// @ts-expect-error: an id is never returned
void added.id
const page: PlantPage = await store.list({ limit: 1, signal: AbortSignal.timeout(30_000) })
const names: string[] = []
for await (const { name } of store.all({ pageSize: 1 })) names.push(name)
const kind = await store.add(wrong).catch((error) => error instanceof PlantStoreError && error.kind)
console.log(JSON.stringify({ added, page: page.plants, names, kind }))
`

const strict = { strict: true, module: 'nodenext', target: 'es2022', skipDefaultLibCheck: true }
const lib = ['es2022', 'dom']
const typeRoots = [join(root, 'node_modules/@types')]

/** TypeScript 7 with the types of Node, and 5 without them, because it takes seconds to read them. */
const compilers: [directory: string, types: object, ...declarations: string[]][] = [
  ['node_modules', { typeRoots, types: ['node'] }],
  ['client/node_modules', { types: [] }, 'process.d.ts'],
]
const ownProcess = 'declare const process: { env: Record<string, string | undefined> }'

test('a strict program and the examples of the README compile, and the program runs', async (t) => {
  writeFileSync(join(project, 'program.ts'), program)
  const readme = readFileSync(join(root, 'client/README.md'), 'utf8')
  t.notMatch(readme, /\]\(\.\.?\//, 'no link leads out of the package')
  const shown = findCodeBlocks(readme).filter(({ language }) => language === 'js')
  for (const [index, { text }] of shown.entries()) writeFileSync(join(project, `shown-${index}.ts`), text)
  const programs = ['program.ts', ...shown.map((_, index) => `shown-${index}.ts`)]
  writeFileSync(join(project, 'process.d.ts'), ownProcess)
  for (const [compiler, types, ...declarations] of compilers) {
    const config = { compilerOptions: { ...strict, lib, ...types }, files: [...programs, ...declarations] }
    writeFileSync(join(project, 'tsconfig.json'), JSON.stringify(config))
    const tsc = join(root, compiler, 'typescript/bin/tsc')
    const compiled = await run(process.execPath, [tsc], { cwd: project })
    t.equal(compiled.stdout, '', compiler)
    t.equal(compiled.code, 0)
  }
  const { url } = await startApp(t)
  const env = { BASE_URL: url, TOKEN: token }
  const ran = await run(process.execPath, ['program.js'], { cwd: project, env })
  t.equal(ran.stderr, '')
  const printed = { added: alder, page: [alder], names: [alder.name], kind: 'invalid-request' }
  t.same(JSON.parse(ran.stdout), printed)
})

test('a CommonJS program loads the client', async (t) => {
  const program = "console.log(typeof require('plant-store-client').PlantStore)"
  t.equal((await run(process.execPath, ['-e', program], { cwd: project })).stdout, 'function\n')
})

test('the examples of the README run', async (t) => {
  const readme = readFileSync(join(root, 'client/README.md'), 'utf8')
  const examples = findCodeBlocks(readme).filter(({ language }) => language !== 'sh')
  const shown: Record<string, RegExp> = {
    Use: /^Black alder\n$/,
    Pages: /^(1|true)\n$/,
    'New plants': /^Black alder\n$/,
    Errors: /^400 invalid-request\n\/name .+\n$/,
    Retries: /^$/,
    Stopping: /^3\n$/,
    'Types only': /^3\n$/,
  }
  t.same([...new Set(examples.map(({ heading }) => heading))], Object.keys(shown))
  const { url } = await startApp(t)
  const env = { BASE_URL: url, TOKEN: token }
  for (const { heading, language, text } of examples) {
    // A directory where openapi-fetch is also installed.
    const file = join(language === 'ts' ? join(root, 'client/dist') : project, `example.${language}`)
    writeFileSync(file, text)
    t.teardown(() => rmSync(file, { force: true }))
    const ran = await run(process.execPath, [file], { env })
    t.equal(ran.stderr, '', text)
    t.match(ran.stdout, shown[heading], heading)
  }
  const names = ((await request(`${url}/plants`)).json() as { name: string }[]).map(({ name }) => name)
  t.same(names, ['Black alder', 'Alder', 'Grey alder'])
})
