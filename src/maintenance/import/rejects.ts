// Rejected records: tells why, and writes them to a file as they were, which is an input again once they are corrected.
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, statSync, writeSync } from 'node:fs'
import { separate } from '../../runtime/count.ts'
import { FileRefused, giveToOwner } from '../../runtime/new-file.ts'
import { describeFaults } from './check.ts'
import { textOf } from './csv.ts'
import type { ImportOptions, ImportResult, Reason } from './import-options.ts'
import { nameOf } from './input.ts'
import type { Place, Position } from './notes.ts'
import { type InputRecord, tooLong } from './record.ts'
import type { Records } from './records.ts'

/** Reasons that are kept for --json. */
const keptReasons = 10_000

export class Rejects {
  readonly #options: ImportOptions
  readonly #result: ImportResult
  readonly #form: { start: string; between: string; after: boolean; end: string }
  #file: number | undefined
  /** What the file holds behind the recorded length: rejects of batches that were under way. */
  #tail = Buffer.alloc(0)
  #pending = ''
  #count = 0
  isOpen = false
  /** The length of the file, without its end. */
  bytes = 0

  constructor(
    options: ImportOptions,
    { format, header }: Pick<Records, 'format' | 'header'>,
    result: ImportResult,
  ) {
    this.#options = options
    this.#result = result
    this.#form =
      format === 'json'
        ? { start: '[\n', between: ',\n', after: false, end: '\n]\n' }
        : { start: textOf(header), between: '', after: true, end: '' }
  }

  /**
   * Opens the file; returns the position from which records are read again, as their rejects may not have been written.
   * Throws FileRefused when it exists, unless the import is resumed and the file is as the import left it.
   */
  open({ from, end }: Place): Position {
    const { rejects: path, resume } = this.#options
    this.isOpen = true
    if (path === undefined || path === '-') return end
    return this.#try(() => {
      const found = statSync(path, { throwIfNoEntry: false })
      if (found?.isFile() && !resume) throw new Error('it exists; name another file')
      const file = openSync(path, found ? 'a+' : 'ax+')
      this.#file = file
      if (!found) giveToOwner(path)
      if (!found?.isFile()) return end
      if (found.size < from.rejects) throw changed()
      this.bytes = from.rejects
      const tail = Buffer.alloc(found.size - this.bytes)
      readSync(file, tail, 0, tail.length, this.bytes)
      const hasEnd = tail.toString('latin1').endsWith(this.#form.end)
      this.#tail = tail.subarray(0, tail.length - (hasEnd ? this.#form.end.length : 0))
      return from
    })
  }

  /** Tells why a record is rejected, and adds it to those to be written. */
  add(record: InputRecord, faults: Reason[]): void {
    const { path: input, rejects: path, say, shownRejects = Number.POSITIVE_INFINITY } = this.#options
    const isLeftOut = record.fault === tooLong && path !== undefined
    const reason =
      describeFaults(faults) + (isLeftOut ? `; left out of ${path === '-' ? 'stdout' : path}` : '')
    const { reasons } = this.#result
    if (reasons.length < keptReasons) reasons.push({ line: record.line, reason, errors: faults })
    if (++this.#count <= shownRejects) say(`${nameOf(input)}, line ${record.line}: ${reason}`)
    if (path === undefined || isLeftOut) return
    const { start, between, after } = this.#form
    const isFirst = this.bytes === 0 && this.#pending === ''
    this.#pending += (isFirst ? start : between) + (after ? textOf(record) : record.text)
  }

  /**
   * Writes added records to the file, except for those that an interrupted import has written. Throws when it has other
   * ones; `isNew`: it has no more, as what was added is new.
   */
  flush(isNew = false): void {
    const pending = Buffer.from(this.#pending, 'latin1')
    const there = Math.min(pending.length, this.#tail.length)
    const differs = !pending.subarray(0, there).equals(this.#tail.subarray(0, there))
    this.#try(() => {
      if (differs || (isNew && this.#tail.length > there)) throw changed()
    })
    this.#pending = ''
    this.#tail = this.#tail.subarray(there)
    this.bytes += there
    if (pending.length > there) this.#write(pending.subarray(there))
    this.bytes += pending.length - there
  }

  /** Closes the file, and reports how many records were not shown. */
  close(): void {
    if (this.bytes > 0 && this.#tail.length === 0) this.#write(Buffer.from(this.#form.end))
    if (this.#file !== undefined) closeSync(this.#file)
    const { rejects: path, say, shownRejects = Number.POSITIVE_INFINITY } = this.#options
    const more = this.#count - shownRejects
    if (more > 0)
      say(`and ${separate(more)} more${path === undefined ? '; --rejects FILE keeps them all' : ''}`)
  }

  #write(bytes: Buffer): void {
    if (this.#options.rejects === '-') process.stdout.write(bytes)
    const file = this.#file
    if (file === undefined) return
    this.#try(() => {
      // Cut off the end of the earlier import.
      if (fstatSync(file).isFile()) ftruncateSync(file, this.bytes)
      for (let done = 0; done < bytes.length; ) done += writeSync(file, bytes, done)
    })
  }

  #try<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw new FileRefused(`cannot write ${this.#options.rejects}: ${(error as Error).message}`)
    }
  }
}

function changed(): Error {
  return new Error('it is not as the import left it; name another file')
}
