// Rejected records: tells why, and writes them to a file as they were, which is an input again once they are corrected.
import { closeSync, openSync, readSync, statSync, writeSync } from 'node:fs'
import { separate } from '../../runtime/count.ts'
import { FileRefused, giveToOwner } from '../../runtime/new-file.ts'
import { describeFaults } from './check.ts'
import type { ImportOptions, ImportResult, Reason } from './import-options.ts'
import { nameOf } from './input.ts'
import type { Position } from './notes.ts'
import { type InputRecord, tooLong } from './record.ts'
import type { Records } from './records.ts'

/** Reasons that are kept for --json, and that are told on a terminal. */
const keptReasons = 10_000
const shownReasons = 10

const changed = 'it is not as the import left it; name another file'

export class Rejects {
  readonly #options: ImportOptions
  readonly #result: ImportResult
  readonly #form: { start: string; between: string; end: string }
  #file: number | undefined
  #isRegular = false
  /** What a file has behind the recorded length: rejects of the last batch, and its end. */
  #tail = ''
  #pending = ''
  /** Reasons that may still be told; below zero: those that were not. */
  #room: number
  /** The length of the file, without its end. */
  bytes = 0

  constructor(options: ImportOptions, { format, header }: Records, result: ImportResult) {
    this.#options = options
    this.#result = result
    this.#room = options.isTerminal ? shownReasons : Number.POSITIVE_INFINITY
    this.#form =
      format === 'json'
        ? { start: '[\n', between: ',\n', end: '\n]\n' }
        : { start: header ? textOf(header) : '', between: '', end: '' }
  }

  /**
   * Opens the file; returns the position from which records are read again, as their rejects may not have been written.
   * Throws FileRefused when it exists, unless the import is resumed and the file is as the import left it.
   */
  open(known: Position): Position {
    const { rejects: path, resume } = this.#options
    if (path === undefined || path === '-') return known
    const { batch } = known
    return this.#try(() => {
      const found = statSync(path, { throwIfNoEntry: false })
      this.#isRegular = found?.isFile() ?? true
      if (found && this.#isRegular && !resume) throw this.#refuse('it exists; name another file')
      this.#file = openSync(path, found ? 'r+' : 'wx+')
      if (!found) giveToOwner(path)
      if (!found || !this.#isRegular) return known
      if (found.size < batch.rejects) throw this.#refuse(changed)
      this.bytes = batch.rejects
      const tail = Buffer.alloc(found.size - this.bytes)
      readSync(this.#file, tail, 0, tail.length, this.bytes)
      this.#tail = tail.toString('latin1')
      if (batch.bytes === known.bytes) this.flush()
      return { ...known, ...batch }
    })
  }

  /** Tells why a record is rejected, and adds it to those to be written. */
  add(record: InputRecord, faults: Reason[]): void {
    const { path: input, rejects: path, say } = this.#options
    const isLeftOut = record.fault === tooLong && path !== undefined
    const reason =
      describeFaults(faults) + (isLeftOut ? `; left out of ${path === '-' ? 'stdout' : path}` : '')
    const { reasons } = this.#result
    if (reasons.length < keptReasons) reasons.push({ line: record.line, reason, errors: faults })
    if (--this.#room >= 0) say(`${nameOf(input)}, line ${record.line}: ${reason}`)
    if (path === undefined || isLeftOut) return
    const { start, between } = this.#form
    const isFirst = this.bytes === 0 && this.#pending === ''
    this.#pending += (isFirst ? start : between) + textOf(record)
  }

  /** Writes the rejects of a batch. Throws when the file has others, so it is not as an interrupted import left it. */
  flush(): void {
    const [text, tail, { end }] = [this.#pending, this.#tail, this.#form]
    if (tail !== end && !(text + end).startsWith(tail)) throw this.#refuse(changed)
    this.#pending = ''
    this.#tail = ''
    this.#write(text)
    this.bytes += text.length
  }

  /** Ends and closes the file, and reports how many records were not shown. */
  close(): void {
    const { rejects: path, say } = this.#options
    if (this.bytes > 0 && this.#tail === '') this.#write(this.#form.end)
    if (this.#file !== undefined) closeSync(this.#file)
    const advice = path === undefined ? '; --rejects FILE keeps them all' : ''
    if (this.#room < 0) say(`and ${separate(-this.#room)} more${advice}`)
  }

  #write(text: string): void {
    if (this.#options.rejects === '-') process.stdout.write(text, 'latin1')
    const file = this.#file
    if (file === undefined) return
    const bytes = Buffer.from(text, 'latin1')
    this.#try(() => {
      for (let done = 0; done < bytes.length; )
        done += writeSync(file, bytes, done, null, this.#isRegular ? this.bytes + done : null)
    })
  }

  #try<T>(work: () => T): T {
    try {
      return work()
    } catch (error) {
      throw error instanceof FileRefused ? error : this.#refuse((error as Error).message)
    }
  }

  #refuse(reason: string): FileRefused {
    return new FileRefused(`cannot write ${this.#options.rejects}: ${reason}`)
  }
}

/** A record with its end of line; an element of an array has none. */
function textOf({ text, eol }: InputRecord): string {
  return text + (eol ?? '')
}
