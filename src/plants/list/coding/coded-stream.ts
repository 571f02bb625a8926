// A long list, compressed on its way: a part is read, compressed in the thread pool and handed on when its reader asks.
import type { Readable } from 'node:stream'
import type { FairPool } from '../../../runtime/fair-pool.ts'
import { PartStream } from '../part-stream.ts'
import type { Codec } from './codec.ts'

export type CodedStreamOptions = { codec: Codec; jobs: FairPool; owner: string }

export class CodedStream extends PartStream {
  constructor(list: Readable, { codec, jobs, owner }: CodedStreamOptions) {
    super(async function* () {
      for await (const part of list) {
        const bytes = await jobs.run(owner, () => codec.add(part))
        // A part may be too little for the codec to give anything yet.
        if (bytes.length > 0) yield bytes
      }
      yield await jobs.run(owner, () => codec.finish())
    })
    this.once('close', () => {
      list.destroy()
      codec.close()
    })
  }
}
