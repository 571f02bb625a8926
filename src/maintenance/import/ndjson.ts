// NDJSON: one JSON text per line. Empty lines are skipped (ndjson.org).
import type { Fault } from '../../../schemas/problem.ts'
import { LineSplitter, trimReturn } from './lines.ts'
import { type InputRecord, maxRecordLength, type Splitter } from './record.ts'

const fault: Fault = { code: 'length', detail: `is longer than ${maxRecordLength / 1024} KiB`, pointer: '' }

export class NdjsonSplitter implements Splitter {
  readonly #lines = new LineSplitter();

  *split(piece: string, isLast: boolean): Generator<InputRecord> {
    for (const whole of this.#lines.split(piece, isLast)) {
      const text = trimReturn(whole)
      const { line } = this.#lines
      if (text.length > maxRecordLength) yield { line, text: text.slice(0, maxRecordLength), fault }
      else if (text !== '') yield { line, text }
    }
  }
}
