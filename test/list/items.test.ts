// The text of plants is a format: logs, ETags and retries hold it, so it may change only with its number.
import { test } from 'tap'
import { itemFormat, serializeItem } from '../../src/plants/item.ts'
import { request, startApp } from '../support/service.ts'

/** A change here needs another `itemFormat`, and an answer to what becomes of the plants that are stored. */
const golden: [name: string, tag: string, text: string][] = [
  ['Alder', 'Alnus', '{"name":"Alder","tag":"Alnus"}'],
  ['a', '', '{"name":"a","tag":""}'],
  ['"', '\\', '{"name":"\\"","tag":"\\\\"}'],
  ["/ & <b> ' ", '\u2028\u2029', '{"name":"/ & <b> \' ","tag":"\u2028\u2029"}'],
  ['山椒', 'é e\u0301', '{"name":"山椒","tag":"é e\u0301"}'],
  ['🌿', '\ufeff\uffff\u00a0', '{"name":"🌿","tag":"\ufeff\uffff\u00a0"}'],
  ['"'.repeat(255), '🌿'.repeat(255), `{"name":"${'\\"'.repeat(255)}","tag":"${'🌿'.repeat(255)}"}`],
]

test('the text of a plant is the same to the byte, as its format number says', async (t) => {
  t.equal(itemFormat, 1)
  for (const [name, tag, text] of golden) {
    t.equal(serializeItem({ name, tag }), text)
    t.equal(serializeItem({ tag, name, id: 7 } as { name: string; tag: string }), text)
  }
})

test('lists and answers show that text, and their ETags name its format', async (t) => {
  const { url } = await startApp(t)
  for (const [name, tag, text] of golden)
    t.equal((await request(`${url}/plants`, { body: { tag, name } })).text, text)
  const list = await request(`${url}/plants`)
  t.equal(list.text, `[${golden.map(([, , text]) => text).join()}]`)
  t.match(list.headers.get('etag'), new RegExp(`^W/"${itemFormat}\\.0-${golden.length}\\.`))
})
