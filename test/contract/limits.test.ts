// Whoever changes a limit of a request finds each place that names it: what is made follows by itself, what is written by
// hand fails here.
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { maxBodyBytes, maxHeaderBytes, maxUrlBytes } from '../../src/limits.ts'

const [body, url, headers] = [maxBodyBytes, maxUrlBytes, maxHeaderBytes].map((bytes) => `${bytes / 1024} KiB`)

/** What is written by hand, and how it names the limits. */
const passages: [file: string, texts: string[]][] = [
  [
    'docs/guide.md',
    [
      `| body | ${body} | 413 |`,
      `| URL | ${url} | 414 |`,
      `| header section | ${headers}, the URL included | 431 |`,
    ],
  ],
  ['docs/contract.md', [`a body over ${body}`, `a URL over ${url}`, `a header section over ${headers}`]],
  ['docs/configure.md', [`| body, URL, header section | ${body}, ${url}, ${headers} |`]],
]

for (const [file, texts] of passages)
  test(`${file} names the limits as they are`, async (t) => {
    const text = readFileSync(file, 'utf8').replace(/\s+/g, ' ')
    for (const passage of texts) t.ok(text.includes(passage), passage)
  })

test('the contract and its examples name another limit for bodies by themselves', async (t) => {
  const hook = `
    import { registerHooks } from 'node:module'
    registerHooks({
      load(url, context, nextLoad) {
        const loaded = nextLoad(url, context)
        if (!url.endsWith('/src/limits.ts')) return loaded
        const source = String(loaded.source).replace(/maxBodyBytes = .*/, 'maxBodyBytes = 4096')
        return { ...loaded, source }
      },
    })`
  const print = (...before: string[]) =>
    execFileSync(process.execPath, [...before, 'src/cli.ts', 'openapi'], { encoding: 'utf8' })
  const named = (text: string) => text.match(/The body is larger than [^.]+\./g)
  const usual = named(print())
  const other = named(print('--import', `data:text/javascript,${encodeURIComponent(hook)}`))
  t.ok(usual && usual.length > 1)
  t.same(
    usual,
    usual?.map(() => `The body is larger than ${body}.`),
  )
  t.same(
    other,
    usual?.map(() => 'The body is larger than 4 KiB.'),
  )
})
