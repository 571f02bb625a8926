// Reads a row as bytes, by COPY: of other queries pg makes strings, which lists would have to encode again.
import pg from 'pg'

/** Length of the header of a binary COPY (signature, flags, no extension), of the number of fields, and of a length. */
const [headerBytes, countBytes, lengthBytes] = [19, 2, 4]

/** Reads the fields of the one row of a SELECT without parameters, none of them NULL, in binary form. */
export class CopiedRow extends pg.Query {
  readonly fields: Buffer[] = []

  constructor(select: string, done: (error: Error | null) => void) {
    super(`COPY (${select}) TO STDOUT (FORMAT binary)`, done)
  }

  /** Takes a message: the header and the row, or the end mark. */
  handleCopyData({ chunk }: { chunk: Buffer }): void {
    if (this.fields.length > 0) return
    // pg reuses its buffer.
    const row = Buffer.from(chunk)
    let at = headerBytes + countBytes
    while (at < row.length) {
      const from = at + lengthBytes
      at = from + row.readInt32BE(at)
      this.fields.push(row.subarray(from, at))
    }
  }
}
