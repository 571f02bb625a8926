// Compresses a long list while it is sent: parts are read, compressed in the thread pool and passed on as the client
// reads.
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
        // The codec may need more parts before its first output.
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
