// Reports rejected records, and writes them to a file in the form of the input, byte for byte.
import { accessSync, constants, createWriteStream, existsSync } from 'node:fs'
import type { FileHandle } from 'node:fs/promises'
import { dirname } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { Fault } from '../../../schemas/problem.ts'
import { CommandError, separate } from '../../cli/console.ts'
import { writeNewFile } from '../../cli/new-file.ts'
import type { Form } from './form.ts'
import { openUnnamed } from './input.ts'
import { describeFaults } from './plants.ts'
import { type InputRecord, tooLong } from './records.ts'

/** A fault of a record; `id-conflict` is between two plants. */
export type Reason = Omit<Fault, 'code'> & { code: Fault['code'] | 'id-conflict' }

/** `file`: where rejected records go, `-` is stdout; `isTerminal`: tell only the first reasons; `json`: keep them all. */
export type RejectOptions = {
  name: string
  file: string | undefined
  isTerminal: boolean
  json: boolean
  say: (line: string) => void
}

const shownReasons = 10
const flushBytes = 64 * 1024

export class Rejects {
  readonly reasons: { line: number; reason: string; errors: Reason[] }[] = []
  readonly #options: RejectOptions
  #count = 0
  #copy: FileHandle | undefined
  #pending = ''
  #written = 0

  /** Throws CommandError if the file exists, or could not be created. */
  constructor(options: RejectOptions) {
    this.#options = options
    const { file } = options
    if (file === undefined || file === '-') return
    if (existsSync(file)) throw new CommandError(`cannot write ${file}: it exists; name a new file`)
    try {
      accessSync(dirname(file), constants.W_OK)
    } catch (error) {
      throw new CommandError(`cannot write ${file}: ${(error as Error).message}`)
    }
  }

  async add(record: InputRecord, errors: Reason[], { format }: Form, header: string): Promise<void> {
    const { name, file, isTerminal, json, say } = this.#options
    const isLeftOut = errors[0] === tooLong && file !== undefined
    const reason = describeFaults(errors) + (isLeftOut ? '; it is left out of the rejects' : '')
    if (json) this.reasons.push({ line: record.line, reason, errors })
    if (++this.#count <= shownReasons || !isTerminal) say(`${name}, line ${record.line}: ${reason}`)
    if (file === undefined || isLeftOut) return
    const [first, next] = format === 'json' ? ['[\n', ',\n'] : [header, '']
    this.#pending += (this.#written++ === 0 ? first : next) + record.text + (record.eol ?? '')
    if (this.#pending.length > flushBytes) await this.#flush()
  }

  /** Reports how many reasons were not shown, and creates the file if there are rejected records. */
  async publish({ format }: Form, signal: AbortSignal): Promise<void> {
    const { file = '-', isTerminal, say } = this.#options
    const more = isTerminal ? this.#count - shownReasons : 0
    if (more > 0)
      say(
        `and ${separate(more)} more${this.#options.file === undefined ? '; --rejects FILE keeps them all' : ''}`,
      )
    if (this.#written === 0) return
    if (format === 'json') this.#pending += '\n]\n'
    const copy = await this.#flush()
    const stream = copy.createReadStream({ start: 0, autoClose: false })
    if (file === '-') await pipeline(stream, process.stdout, { end: false })
    else
      await writeNewFile(file, { signal }, (path) =>
        pipeline(stream, createWriteStream(path, { flags: 'wx' })),
      )
  }

  async close(): Promise<void> {
    await this.#copy?.close()
  }

  async #flush(): Promise<FileHandle> {
    this.#copy ??= await openUnnamed()
    await this.#copy.appendFile(Buffer.from(this.#pending, 'latin1'))
    this.#pending = ''
    return this.#copy
  }
}
