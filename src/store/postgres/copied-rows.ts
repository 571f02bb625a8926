// Reads rows as bytes, by COPY. Of other queries pg makes strings, which would have to be encoded again for lists.
import pg from 'pg'

/** Length of the header: signature, flags, and the length of its extension, which is 0. */
const headerBytes = 19
const lengthBytes = 4

export class CopiedRows extends pg.Query {
  /** The fields of each row in binary format (PostgreSQL's documentation, COPY); that of text is UTF-8. */
  readonly copied: Buffer[][] = []
  #isFirst = true

  /** `select` must not return NULL. Its text contains the values, as COPY takes no parameters. */
  constructor(select: string, done: (error: Error | null) => void) {
    super(`COPY (${select}) TO STDOUT (FORMAT binary)`, done)
  }

  /** Takes a message: a row, behind the header in the first one, or the end mark. */
  handleCopyData({ chunk }: { chunk: Buffer }): void {
    const start = this.#isFirst ? headerBytes : 0
    this.#isFirst = false
    const fields = chunk.readInt16BE(start)
    if (fields < 0) return
    // A copy: pg reuses its buffer.
    const row = Buffer.from(chunk)
    let at = start + 2
    this.copied.push(
      Array.from({ length: fields }, () => {
        const from = at + lengthBytes
        at = from + row.readInt32BE(at)
        return row.subarray(from, at)
      }),
    )
  }
}
