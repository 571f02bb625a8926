// The two operations know nothing of HTTP: what src/plants/ imports.
import { readdirSync, readFileSync } from 'node:fs'
import { test } from 'tap'

const folder = new URL('../../src/plants/', import.meta.url)

test('src/plants imports nothing of Fastify, of node:http or of what serves requests', async (t) => {
  const files = readdirSync(folder).filter((name) => name.endsWith('.ts'))
  t.ok(files.length > 0)
  for (const name of files) {
    const imports = readFileSync(new URL(name, folder), 'utf8').matchAll(/from '([^']+)'/g)
    for (const [, source = ''] of imports)
      t.notMatch(source, /fastify|node:https?|\/(plugins|routes|app|server)\b/, `${name}: ${source}`)
  }
})
