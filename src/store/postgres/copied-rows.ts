// Rows as bytes. pg makes a string of every value, from which a part of a list would have to be encoded again; only what a
// COPY sends does it hand over as it came.
import pg from 'pg'

/** Length of the header before the first row: a signature, flags, and the length of an extension that there is not. */
const headerBytes = 19
const lengthBytes = 4

export class CopiedRows extends pg.Query {
  /** The fields of each row in their binary form (PostgreSQL's documentation, COPY); for text that is its UTF-8. */
  readonly copied: Buffer[][] = []
  #isFirst = true

  /** `select` gives no NULL. Numbers stand in its text: COPY takes no parameters. */
  constructor(select: string, done: (error: Error | null) => void) {
    super(`COPY (${select}) TO STDOUT (FORMAT binary)`, done)
  }

  /** Each row is a message of its own, and so is the mark of the end; the header comes with the first. */
  handleCopyData({ chunk }: { chunk: Buffer }): void {
    const start = this.#isFirst ? headerBytes : 0
    this.#isFirst = false
    const fields = chunk.readInt16BE(start)
    if (fields < 0) return
    // pg writes over its memory when more comes.
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
