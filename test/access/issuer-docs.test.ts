// docs/secure.md says what the code does.
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { settingRows } from '../../src/settings.ts'
import { reasons } from '../../src/tokens/jwt.ts'

const page = readFileSync(new URL('../../docs/secure.md', import.meta.url), 'utf8')

test('the table of reasons is that of the code, and every setting is described', (t) => {
  const rows = Object.entries(reasons).map(([reason, text]) => `| \`${reason}\` | ${text} |`)
  t.match(page, `|---|---|\n${rows.join('\n')}\n\n`)
  const names = settingRows.map(({ name }) => name).filter((name) => name.startsWith('OIDC_'))
  for (const name of names) t.match(page, `| \`${name}\` |`)
  t.ok(names.length > 0)
  t.end()
})
