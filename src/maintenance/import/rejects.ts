// Rejected records: shows the first few, and writes all of them to a file (NDJSON).
import { closeSync, fstatSync, ftruncateSync, openSync, readSync, writeSync } from 'node:fs'
import type { Fault } from '../../../schemas/problem.ts'
import { separate } from '../../runtime/count.ts'
import { FileRefused } from '../../runtime/new-file.ts'
import { identify, isSameFile } from '../../runtime/same-file.ts'
import { describeFaults } from './check.ts'
import type { ImportOptions } from './import-options.ts'
import type { Position } from './import-progress.ts'
import { nameOf } from './input.ts'
import type { InputRecord } from './record.ts'

const shownRejects = 10
/** The beginning of every line of the file. */
const firstBytes = Buffer.from('{"line":')

/** A fault of a record; `id-conflict` comes from the store. */
export type Reason = Omit<Fault, 'code'> & { code: Fault['code'] | 'id-conflict' }

export class Rejects {
  readonly #options: ImportOptions
  readonly #header: string | undefined
  #file: number | undefined
  #pending = ''
  #count = 0
  /** The length of the file. */
  bytes = 0

  /** `header`: the header row of a CSV input. */
  constructor(options: ImportOptions, header: string | undefined) {
    this.#options = options
    this.#header = header
  }

  /**
   * Opens the file. A resumed import keeps the rejects of records before its position. Throws FileRefused, also when
   * the file is the input or holds anything but rejects.
   */
  open({ records, rejects: kept, line }: Position): void {
    const { path: input, rejects: path } = this.#options
    if (path === undefined || path === '-') return
    this.#try(() => {
      if (isSameFile(identify(path), identify(input))) throw new Error('it is the input; name another file')
      const file = openSync(path, 'a+')
      this.#file = file
      const { size } = fstatSync(file)
      if (size > 0) checkContent(file)
      this.bytes = Math.min(kept, size)
      const tail = Buffer.alloc(records > 0 ? size - this.bytes : 0)
      readSync(file, tail, 0, tail.length, kept)
      if (size > kept) ftruncateSync(file, kept)
      const after = tail.toString().split('\n').slice(0, -1)
      for (const text of after) if (JSON.parse(text).line <= line) this.#pending += `${text}\n`
    })
    this.flush()
  }

  add({ line, text }: InputRecord, faults: Reason[]): void {
    const reason = describeFaults(faults)
    this.#count++
    const { path: input, rejects: path, say } = this.#options
    if (this.#count <= shownRejects) say(`${nameOf(input)}, line ${line}: ${reason}`)
    if (path === undefined) return
    const reject = { line, reason, errors: faults, header: this.#header, text: text.toWellFormed() }
    this.#pending += `${JSON.stringify(reject)}\n`
  }

  /** Writes added records to the file. */
  flush(): void {
    if (this.#pending === '') return
    const pending = Buffer.from(this.#pending)
    this.#pending = ''
    if (this.#options.rejects === '-') process.stdout.write(pending)
    else
      this.#try(() => {
        for (let done = 0; done < pending.length; )
          done += writeSync(this.#file as number, pending, done, pending.length - done)
      })
    this.bytes += pending.length
  }

  /** Closes the file, and reports how many records were not shown. */
  close(): void {
    this.flush()
    if (this.#file !== undefined) closeSync(this.#file)
    const { rejects: path, say } = this.#options
    const more = this.#count - shownRejects
    if (more <= 0) return
    say(`and ${separate(more)} more${whereAll(path)}`)
  }

  #try(work: () => void): void {
    try {
      work()
    } catch (error) {
      throw new FileRefused(`cannot write ${this.#options.rejects}: ${(error as Error).message}`)
    }
  }
}

function whereAll(path: string | undefined): string {
  if (path === undefined) return '; --rejects FILE keeps them all'
  return path === '-' ? '' : `; all are in ${path}`
}

/** Throws when the file does not begin like a file of rejects: it may be an input, or the database. */
function checkContent(file: number): void {
  const head = Buffer.alloc(firstBytes.length)
  readSync(file, head, 0, head.length, 0)
  if (!head.equals(firstBytes)) throw new Error('it has other contents; name another file')
}
