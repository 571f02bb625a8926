// A process that adds a plant to a SQLite file for each line that it reads: `node appender.ts PATH`. It answers with a
// line: the number of plants after an addition, or the outcome of the store.
import { createInterface } from 'node:readline'
import pino from 'pino'
import { StoreUnavailable } from '../../src/store/errors.ts'
import { openStore } from '../support/stores.ts'

const store = await openStore(`file:${process.argv[2]}`, { logger: pino(pino.destination(2)), mode: 'write' })
console.log('open')
for await (const name of createInterface({ input: process.stdin })) console.log(await add(name))
await store.close()

async function add(name: string): Promise<number | string> {
  try {
    await store.log.append([{ item: JSON.stringify({ name, tag: '' }), id: undefined }])
    return (await store.log.head()).position
  } catch (error) {
    if (!(error instanceof StoreUnavailable)) throw error
    return error.outcome
  }
}
