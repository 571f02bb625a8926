// The patterns of the document in each engine that is at hand: test/patterns.test.ts asks those of JavaScript about them
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
patterns, texts = json.load(sys.stdin)
print(json.dumps([all(re.search(one, text) for one in patterns) for text in texts]))
`

type Pattern = { pattern: string }

/** Every engine with every text: what may be a name matches all patterns of a name, what may not fails one. */
export async function checkPatterns({ file }: Subject): Promise<Outcome> {
  const name: Pattern & { allOf: Pattern[] } = parse(readFileSync(file, 'utf8')).components.schemas.NewPlant
    .properties.name
  const patterns = [name, ...name.allOf].map(({ pattern }) => pattern)
  const texts = [...acceptedNames, ...refusedNames].map(([, text]) => text)
  const readings: [engine: string, read: boolean[]][] = [
    ['ECMAScript', read(texts, patterns, (pattern) => new RegExp(pattern))],
    ['ECMAScript with u', read(texts, patterns, (pattern) => new RegExp(pattern, 'u'))],
    ['re2js', texts.map((text) => patterns.every((one) => RE2JS.compile(one).matcher(text).find()))],
  ]
  const version = await run(['python3', '--version']).catch(() => undefined)
  if (version) readings.push(['python3 re', await readWithPython(patterns, texts)])
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

const read = (texts: string[], patterns: string[], compile: (pattern: string) => RegExp) =>
  texts.map((text) => patterns.every((pattern) => compile(pattern).test(text)))

async function readWithPython(patterns: string[], texts: string[]): Promise<boolean[]> {
  const { stdout, stderr } = await run(['python3', '-c', python], {
    input: JSON.stringify([patterns, texts]),
  })
  if (stderr) throw new Error(stderr)
  return JSON.parse(stdout)
}

function findWrong(found: boolean[]): string[] {
  const names = [...acceptedNames, ...refusedNames]
  return names.filter((_, index) => found[index] !== index < acceptedNames.length).map(([what]) => what)
}
