// Reports invalid records, and writes them to a new file in the form of the input, byte for byte.
import { accessSync, constants, createWriteStream, existsSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Fault } from '../../../schemas/problem.ts'
import { CommandError, separate } from '../../cli/console.ts'
import { writeNewFile } from '../../cli/new-file.ts'
import { openUnnamed } from './input.ts'
import { describeFaults } from './plants.ts'
import { type InputRecord, tooLong } from './records.ts'

/** A fault of a record; `id-conflict` is between two plants. */
export type Reason = Omit<Fault, 'code'> & { code: Fault['code'] | 'id-conflict' }

/** `rejects`: the file, `-` is stdout; `isTerminal`: report only the first reasons; `json`: keep all reasons. */
export type RejectOptions = {
  rejects?: string
  isTerminal?: boolean
  json?: boolean
  say: (line: string) => void
}

const shownReasons = 10

export class Rejects {
  readonly #reasons: object[]
  readonly #options: RejectOptions
  #count = 0
  #copy: FileHandle | undefined
  #pending = ''

  /** `reasons`: gets all reasons, with `json`. Throws CommandError if the file exists, or could not be created. */
  constructor(options: RejectOptions, reasons: object[]) {
    this.#reasons = reasons
    this.#options = options
    const { rejects: file = '-' } = options
    if (file === '-') return
    if (existsSync(file)) throw new CommandError(`cannot write ${file}: it exists; name a new file`)
    try {
      accessSync(dirname(file), constants.W_OK)
    } catch (error) {
      throw new CommandError(`cannot write ${file}: ${(error as Error).message}`)
    }
  }

  /** `start` and `between`: text before the first record and before each other. */
  async add(
    name: string,
    record: InputRecord,
    errors: Reason[],
    [start, between]: [string, string],
  ): Promise<void> {
    const { rejects, isTerminal, json, say } = this.#options
    const isLeftOut = errors[0] === tooLong && rejects !== undefined
    const reason = describeFaults(errors) + (isLeftOut ? '; left out of the rejects' : '')
    if (json) this.#reasons.push({ line: record.line, reason, errors })
    if (++this.#count <= shownReasons || !isTerminal) say(`${name}, line ${record.line}: ${reason}`)
    if (rejects === undefined || isLeftOut) return
    this.#pending += (this.#copy ? between : start) + record.text + (record.eol ?? '')
    this.#copy ??= await openUnnamed()
    if (this.#pending.length > 64 * 1024) await this.#flush(this.#copy)
  }

  /** Creates the file, if there are invalid records; `end`: text behind the last. */
  async publish(end: string, signal: AbortSignal): Promise<void> {
    const { rejects: file, isTerminal, say } = this.#options
    const more = isTerminal ? this.#count - shownReasons : 0
    if (more > 0)
      say(`and ${separate(more)} more${file === undefined ? '; --rejects FILE keeps them all' : ''}`)
    if (!this.#copy || file === undefined) return
    this.#pending += end
    await this.#flush(this.#copy)
    const copy = this.#copy.createReadStream({ start: 0, autoClose: false })
    if (file === '-') await pipeline(copy, process.stdout, { end: false })
    else
      await writeNewFile(file, { signal }, (path) => pipeline(copy, createWriteStream(path, { flags: 'wx' })))
  }

  async #flush(copy: FileHandle): Promise<void> {
    await copy.appendFile(Buffer.from(this.#pending, 'latin1'))
    this.#pending = ''
  }

  async close(): Promise<void> {
    await this.#copy?.close()
  }
}
