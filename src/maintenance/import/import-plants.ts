// Imports an input. With `strict` a first pass checks all of it before anything is added.

import { escapePointer } from '../../http/json.ts'
import { resolveFields } from './fields.ts'
import type { ImportOptions, ImportResult } from './import-options.ts'
import { openInput } from './input.ts'
import { InputError } from './input-error.ts'
import { openWriter } from './open-writer.ts'
import { openRecords } from './records.ts'
import { Rejects } from './rejects.ts'
import { Run } from './run.ts'
import { Scratch } from './scratch.ts'

/** `file`: a copy of the input; `isLook`: a first pass, which asks the store and adds nothing. */
type Pass = { file?: string | undefined; isLook?: boolean }

/**
 * Imports the plants of an input. Throws InputError when the rest of the input cannot be read, StoreRefused or
 * StoreUnavailable when the store does not take it; committed batches stay, and the import can be resumed.
 */
export async function importPlants(options: ImportOptions): Promise<ImportResult> {
  if (!options.strict || options.dryRun) return importOnce(options)
  const scratch = new Scratch(options.signal)
  try {
    const file = await scratch.keep(options.path, options.signal)
    await look(options, file)
    return await importOnce(options, { file })
  } finally {
    scratch.remove()
  }
}

/** Makes the first pass. Throws InputError when a record would be rejected. */
async function look(options: ImportOptions, file: string | undefined): Promise<void> {
  const results: ImportResult[] = []
  const onEnd = (result: ImportResult) => void results.push(result)
  try {
    const { rejected, conflict } = await importOnce(
      { ...options, dryRun: true, onEnd },
      { file, isLook: true },
    )
    if (rejected + conflict > 0) throw new InputError('nothing was added, as --strict adds all or nothing')
  } catch (error) {
    for (const result of results) options.onEnd?.({ ...result, added: 0, replayed: 0, records: 0 })
    throw error
  }
}

async function importOnce(
  options: ImportOptions,
  { file, isLook = false }: Pass = {},
): Promise<ImportResult> {
  const { path, signal, say, format, trim = false } = options
  const input = await openInput(path, signal, file)
  const rejects = new Rejects({ name: input.name, path: options.rejects, input: path, say })
  try {
    const fields = resolveFields(options)
    const records = await openRecords(input, { format, fields, trim })
    const readAs = { format: records.format, fields, trim }
    const { hashes } = records
    rejects.header = records.header
    const idPointer = `/${escapePointer(fields.id)}`
    const writer = await openWriter({ ...options, input, hashes, readAs, rejects, isLook, idPointer })
    return await new Run(options, input, rejects).readInto(writer, records).finally(() => writer.close())
  } catch (error) {
    /* c8 ignore next 2: with a fault of the program itself, the process is over before it has said what was covered */
    throw error instanceof InputError ? error.in(input.name) : error
  } finally {
    input.close()
    rejects.close()
  }
}
