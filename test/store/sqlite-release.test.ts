// A file that version 1.0.0 wrote, kept as it was: it opens, and every promise made on it still holds.
import { copyFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { hashToken } from '../../src/tokens/format.ts'
import { Tokens } from '../../src/tokens/tokens.ts'
import { createDirectory } from '../support/engines.ts'
import { add, listNames, openFile } from '../support/stores.ts'

const released = fileURLToPath(new URL('../fixtures/plants-1.0.0.db', import.meta.url))
const storeId = 'VVS9sPoyRo4w0MywQgAKfQ'
const token = 'plant_POhKNv1F_shOR4e4aRSpWb6Z63fh3Qm4UciJJhj1v_1I5yw4'
const items = [
  '{"name":"Monstera","tag":"indoor"}',
  '{"name":"Ficus","tag":""}',
  '{"name":"ヤシ 🌴","tag":"a\\"b"}',
]

test('a file of version 1.0.0 keeps its plants, its name, its token and its retries', async (t) => {
  const path = join(createDirectory(t), 'plants.db')
  copyFileSync(released, path)
  const { store } = await openFile(t, path)
  t.equal(store.id, storeId)
  const { position, epochs } = await store.log.head()
  t.equal(position, 3)
  t.match(epochs.owner(3), /^.+$/, 'its plants belong to an epoch')
  t.equal(String(await store.log.read(0, 3, epochs.owner(3))), `[${items}]`)
  t.match((await new Tokens(store.tokens).find(['POhKNv1F'])).get('POhKNv1F'), {
    name: 'gardener',
    hash: hashToken(token),
    revokedAt: null,
  })
  const retries = [
    { item: items[0] as string, id: 7 },
    { item: items[1] as string, id: 7 },
    { item: items[2] as string, id: Number.MAX_SAFE_INTEGER },
  ]
  t.strictSame(await store.log.append(retries), ['replayed', 'conflict', 'replayed'])
  t.strictSame(await add(store, 'Moss'), ['added'])
  t.equal((await listNames(store)).at(-1), 'Moss')
  const after = await store.log.head()
  t.equal(after.epochs.owner(3), epochs.owner(3), 'opened again, they belong to the same')
})
