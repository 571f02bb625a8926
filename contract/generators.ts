// Generators of clients and validators: their output compiles under this project's strict settings, and a small program
// that uses it handles real responses, including emoji.
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { bin, folder, type Outcome, run, type Subject, versionOf } from './tools.ts'

const generated = `${folder}generated/`

/** `pack`: the name of its package, if different. */
type Generator = { name: string; pack?: string; makeCommand: (file: string) => [string, ...string[]] }

export const openapiTypescript: Generator = {
  name: 'openapi-typescript',
  makeCommand: (file) => [bin('openapi-typescript'), file, '--output', `${generated}openapi-typescript.ts`],
}

export const heyApi: Generator = {
  name: 'hey-api',
  pack: '@hey-api/openapi-ts',
  makeCommand: (file) => [
    bin('openapi-ts'),
    ...['--input', file, '--output', `${generated}hey-api`, '--plugins', 'zod', 'valibot', '--silent'],
  ],
}

/** Generates code, compiles it with its consumer, and runs the consumer against the service. */
export function makeGeneratorCheck({ name, pack = name, makeCommand }: Generator) {
  return async ({ file, url, token }: Subject): Promise<Outcome> => {
    mkdirSync(generated, { recursive: true })
    for (const old of [`${name}.ts`, name]) rmSync(generated + old, { recursive: true, force: true })
    const made = await run(makeCommand(file))
    if (made.code !== 0) throw new Error(`${name} generated nothing: ${made.stdout}${made.stderr}`)
    const mistakes = await compile(name)
    const seen = await consume(name, url, token)
    return {
      tool: name,
      version: versionOf(pack),
      cases: seen.cases + 1,
      failures: [...mistakes, ...seen.failures],
      explained: seen.explained,
    }
  }
}

async function compile(name: string): Promise<string[]> {
  const settings = { extends: '../tsconfig.json', include: [], files: [`../consumers/${name}.ts`] }
  const project = `${generated}${name}.tsconfig.json`
  writeFileSync(project, JSON.stringify(settings))
  const tsc = fileURLToPath(new URL('../node_modules/.bin/tsc', import.meta.url))
  const { code, stdout } = await run([tsc, '--project', project, '--pretty', 'false'])
  return code === 0 ? [] : stdout.trim().split('\n')
}

async function consume(name: string, url: string, token: string): Promise<Omit<Outcome, 'tool' | 'version'>> {
  const flags = ['--experimental-transform-types', '--disable-warning=ExperimentalWarning']
  const ran = await run([process.execPath, ...flags, `${folder}consumers/${name}.ts`, url, token])
  if (ran.code !== 0) throw new Error(`the consumer of ${name} failed: ${ran.stderr}`)
  return JSON.parse(ran.stdout)
}
