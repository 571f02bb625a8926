// Reports invalid records, and writes them to a new file in the form of the input, byte for byte.
import { createWriteStream, existsSync } from 'node:fs'
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

const shownReasons = 10

/**
 * `name`: of the input; `file`: for the records, `-` is stdout; `reasons`: gets them all. On a terminal only the first are
 * reported. Throws CommandError if the file exists, or could not be created.
 */
export function makeRejects(
  name: string,
  file: string | undefined,
  reasons: object[] | undefined,
  say: (line: string) => void,
) {
  const isTerminal = process.stderr.isTTY
  let [count, pending, copy] = [0, '', undefined as FileHandle | undefined]
  if (file !== undefined && file !== '-') {
    if (existsSync(file)) throw new CommandError(`cannot write ${file}: it exists; name a new file`)
    if (!existsSync(dirname(file))) throw new CommandError(`cannot write ${file}: its directory is missing`)
  }
  const flush = async () => {
    await copy?.appendFile(Buffer.from(pending, 'latin1'))
    pending = ''
  }
  return {
    /** `start`, `between`: text before the first record and before each other. */
    async add(record: InputRecord, errors: Reason[], start: string, between: string): Promise<void> {
      const isLeftOut = errors[0] === tooLong && file !== undefined
      const reason = describeFaults(errors) + (isLeftOut ? '; left out of the rejects' : '')
      reasons?.push({ line: record.line, reason, errors })
      if (++count <= shownReasons || !isTerminal) say(`${name}, line ${record.line}: ${reason}`)
      if (file === undefined || isLeftOut) return
      pending += (copy ? between : start) + record.text + (record.eol ?? '')
      copy ??= await openUnnamed()
      if (pending.length > 64 * 1024) await flush()
    },

    /** Creates the file, if there are invalid records; `end`: text behind the last. */
    async publish(end: string, signal: AbortSignal): Promise<void> {
      const more = isTerminal ? count - shownReasons : 0
      if (more > 0) say(`and ${separate(more)} more${file ? '' : '; --rejects FILE keeps them all'}`)
      if (!copy || file === undefined) return
      pending += end
      await flush()
      const records = copy.createReadStream({ start: 0, autoClose: false })
      if (file === '-') await pipeline(records, process.stdout, { end: false })
      else
        await writeNewFile(file, { signal }, (path) =>
          pipeline(records, createWriteStream(path, { flags: 'wx' })),
        )
    },

    close: async () => copy?.close(),
  }
}
