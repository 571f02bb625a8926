// The patterns of the contract mean the same to the service and to the engines that clients use.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { RE2JS } from 're2js'
import { test } from 'tap'
import { parse } from 'yaml'
import { walk } from '../support/contract.ts'
import { request, startApp } from '../support/service.ts'
import { skipWithout } from '../support/tools.ts'
import { acceptedNames, namesOfOtherLength, refusedNames } from './texts.ts'

// biome-ignore lint/suspicious/noExplicitAny: the document is walked, not known.
type Node = any
const { components } = parse(readFileSync(new URL('../../openapi.yaml', import.meta.url), 'utf8'))

const finder = (pattern: RE2JS) => (text: string) => pattern.matcher(text).find()
const engines: [name: string, compile: (pattern: string) => (text: string) => boolean][] = [
  ['ECMAScript', (pattern) => (text) => new RegExp(pattern).test(text)],
  ['ECMAScript with u', (pattern) => (text) => new RegExp(pattern, 'u').test(text)],
  ['ECMAScript with v', (pattern) => (text) => new RegExp(pattern, 'v').test(text)],
  ['RE2', (pattern) => finder(RE2JS.compile(pattern))],
]

const characters = [...Array(0x3100).keys(), 0xfeff, 0xffff, 0x1f33f, 0x10ffff].map((code) =>
  String.fromCodePoint(code),
)
const found = [...walk(components)].map(([, { pattern }]) => pattern).filter((one) => typeof one === 'string')
const patterns = [...new Set<string>(found)]
const ofName: string = components.schemas.NewPlant.properties.name.pattern

test('the patterns use only syntax that all engines support', async (t) => {
  for (const pattern of patterns) {
    t.match(pattern, /^[\x20-\x7E]+$/, 'only ASCII')
    t.notMatch(pattern, /\(\?/, 'no look-around')
    t.notMatch(pattern, /\\(?!x[0-9A-F]{2}|[\\^$.*+?()[\]{}|-])/, 'only bytes and punctuation are escaped')
  }
})

for (const [engine, compile] of engines) {
  const isName = compile(ofName)
  test(`${engine} accepts the names that the service accepts, and refuses the others`, async (t) => {
    for (const [what, text] of acceptedNames) t.equal(isName(text), true, what)
    for (const [what, text] of refusedNames) t.equal(isName(text), false, what)
  })
}

const python = `
import json, re, sys
pattern, texts = json.load(sys.stdin)
print(json.dumps([bool(re.fullmatch(pattern, text)) for text in texts]))
`

test('Python accepts and refuses the same names', { skip: skipWithout('python3') }, async (t) => {
  const names = [...acceptedNames, ...refusedNames]
  const input = JSON.stringify([ofName, names.map(([, text]) => text)])
  const read = JSON.parse(execFileSync('python3', ['-c', python], { input, encoding: 'utf8' }))
  for (const [index, [what]] of names.entries()) t.equal(read[index], index < acceptedNames.length, what)
})

test('one pattern refuses control characters, and names of only spaces and no-break spaces', async (t) => {
  const isName = (text: string) => !/\p{Cc}/u.test(text) && [...text].some((one) => !' \u00A0'.includes(one))
  const pattern = new RegExp(ofName, 'v')
  for (const one of characters)
    for (const text of [one, `a${one}b`, ` ${one}`, `${one}\u00A0`, `${one}${one} a`])
      if (pattern.test(text) !== isName(text)) t.fail(`U+${one.codePointAt(0)?.toString(16)} in ${text}`)
  for (const schema of Object.values<Node>(components.schemas)) t.notOk(schema.allOf)
})

test('all engines agree on each character, alone and inside a name', async (t) => {
  for (const [index, pattern] of patterns.entries()) {
    const readers = engines.map(([, compile]) => compile(pattern))
    const differ = characters
      .flatMap((one) => [one, `a${one}b`])
      .filter((text) => new Set(readers.map((matches) => matches(text))).size > 1)
    t.same(differ, [], `pattern ${index}`)
  }
})

test('the service accepts and refuses the same names, and returns them unchanged', async (t) => {
  const { url } = await startApp(t)
  for (const [what, name] of acceptedNames) {
    const answer = await request(`${url}/plants`, { body: { name, tag: name } })
    t.match(answer, { status: 200, text: JSON.stringify({ name, tag: name }) }, what)
  }
  for (const [names, code] of [
    [refusedNames, 'text'],
    [namesOfOtherLength, 'length'],
  ] as const)
    for (const [what, name] of names) {
      const answer = await request(`${url}/plants`, { body: { name, tag: '' } })
      t.match(answer.json(), { status: 400, errors: [{ code, pointer: '/name' }] }, what)
    }
  const expected = acceptedNames.map(([, name]) => ({ name, tag: name }))
  t.same((await request(`${url}/plants`)).json(), expected)
})
