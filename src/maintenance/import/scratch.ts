// A temporary folder for an input that can be read only once. It is removed with the import, also when interrupted.
import { createWriteStream, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import { openStream } from './input.ts'
import { FileError } from './input-error.ts'

export class Scratch {
  readonly #path = mkdtempSync(join(tmpdir(), 'plant-store-'))

  constructor(signal: AbortSignal) {
    signal.addEventListener('abort', () => this.remove(), { once: true })
  }

  remove(): void {
    rmSync(this.#path, { recursive: true, force: true })
  }

  /** Copies the input into a file; returns undefined when the path is a regular file already. */
  async keep(path: string, signal: AbortSignal): Promise<string | undefined> {
    const { stream, size } = await openStream(path)
    if (size !== undefined) {
      stream.destroy()
      return undefined
    }
    const file = join(this.#path, 'input')
    /* c8 ignore next 3: a full disk, for a process that can write no coverage either: test/cli/import-broken.test.ts */
    await pipeline(stream, createWriteStream(file, { mode: 0o600 }), { signal }).catch((error) => {
      throw error.syscall === 'write' ? new FileError('write', `${file} (TMPDIR)`, error) : error
    })
    return file
  }
}
