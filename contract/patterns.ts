// The patterns of the document in each engine that is at hand: test/contract/patterns.test.ts asks those of JavaScript about them
// on every run of the suite; here Python joins, where there is one.
import { readFileSync } from 'node:fs'
import { RE2JS } from 're2js'
import { parse } from 'yaml'
import { acceptedNames, refusedNames } from '../test/support/texts.ts'
import { type Outcome, run, type Subject } from './tools.ts'

/** In Python and Java `$` also stands before a last line feed; the guide says so. The service refuses such a text. */
const cannotTravel = new Set(['python3 re: a line feed at the end'])

const python = `
import json, re, sys
pattern, texts = json.load(sys.stdin)
print(json.dumps([bool(re.search(pattern, text)) for text in texts]))
`

/** Every engine with every text: what may be a name matches its pattern, what may not does not. */
export async function checkPatterns({ file }: Subject): Promise<Outcome> {
  const { pattern } = parse(readFileSync(file, 'utf8')).components.schemas.NewPlant.properties.name
  const texts = [...acceptedNames, ...refusedNames].map(([, text]) => text)
  const readings: [engine: string, read: boolean[]][] = ['', 'u', 'v'].map((flag) => {
    const compiled = new RegExp(pattern, flag)
    return [`ECMAScript${flag && ` with ${flag}`}`, texts.map((text) => compiled.test(text))]
  })
  readings.push(['re2js', texts.map((text) => RE2JS.compile(pattern).matcher(text).find())])
  const version = await run(['python3', '--version']).catch(() => undefined)
  if (version) readings.push(['python3 re', await readWithPython(pattern, texts)])
  const wrong = readings.flatMap(([engine, found]) => findWrong(found).map((what) => `${engine}: ${what}`))
  const failures = wrong.filter((one) => !cannotTravel.has(one))
  return {
    tool: `Patterns (${readings.map(([engine]) => engine).join(', ')})`,
    version: `${process.version.slice(1)}${version ? `, ${version.stdout.trim().replace('Python ', '')}` : ''}`,
    cases: readings.length * texts.length,
    failures,
    explained: wrong.length - failures.length,
  }
}

async function readWithPython(pattern: string, texts: string[]): Promise<boolean[]> {
  const { stdout, stderr } = await run(['python3', '-c', python], { input: JSON.stringify([pattern, texts]) })
  if (stderr) throw new Error(stderr)
  return JSON.parse(stdout)
}

function findWrong(found: boolean[]): string[] {
  const names = [...acceptedNames, ...refusedNames]
  return names.filter((_, index) => found[index] !== index < acceptedNames.length).map(([what]) => what)
}
