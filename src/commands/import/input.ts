// Opens the input of an import, so that it can be read twice: a file, or a pipe that is copied into an unnamed file first.
import { randomUUID } from 'node:crypto'
import { createReadStream, realpathSync, rmSync, statSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import type { Readable } from 'node:stream'
import { createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib'
import { CommandError } from '../../cli/console.ts'

/** Decoded as latin1: one character per byte. */
export const byteOrderMark = '\xef\xbb\xbf'

/** The input cannot be imported, not even in part. */
export class InputError extends Error {}

/** Bytes read or decompressed at a time. Their plants are added in one transaction. */
const chunkBytes = 128 * 1024

export type Input = Awaited<ReturnType<typeof openInput>>

/**
 * Opens a file, or stdin as `-`. `path`: of a regular file, with links resolved; `read`: yields the decompressed bytes,
 * then an empty chunk.
 */
export async function openInput(name: string) {
  const path = name !== '-' && statSync(name).isFile() ? realpathSync(name) : undefined
  const file = path ? await open(path) : await copyPipe(name === '-' ? process.stdin : createReadStream(name))
  return { path, read: () => readChunks(file), close: () => file.close() }
}

/** Copies a pipe into an unnamed file, which disappears with the process, however that ends. */
async function copyPipe(pipe: Readable): Promise<FileHandle> {
  const path = join(tmpdir(), `plant-store-${randomUUID()}`)
  let copy: FileHandle | undefined
  try {
    copy = await open(path, 'wx+', 0o600)
    rmSync(path)
    await copy.writeFile(pipe)
    return copy
  } catch (error) {
    await copy?.close()
    const { syscall, message } = error as NodeJS.ErrnoException
    if (syscall !== 'open' && syscall !== 'write') throw error
    throw new CommandError(`cannot write a temporary file in ${tmpdir()} (TMPDIR): ${message}`)
  }
}

/** `magic`: the first bytes, in hex; zstd may begin with a skippable frame. */
const codings = [
  { name: 'gzip', magic: /^1f8b/, open: createGunzip },
  { name: 'zstd', magic: /^(28b52ffd|5.2a4d18)/, open: createZstdDecompress },
]

async function* readChunks(file: FileHandle): AsyncGenerator<Buffer> {
  const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0)
  const coding = codings.find(({ magic }) => magic.test(buffer.toString('hex')))
  yield* coding ? decompress(file, coding) : readBytes(file, 0)
  yield Buffer.alloc(0)
}

/** Decompresses consecutive members or frames, up to the end of the file. */
async function* decompress(file: FileHandle, { name, open }: (typeof codings)[number]) {
  const { size } = await file.stat()
  try {
    for (let at = 0; at < size; ) {
      const decoder = open({ chunkSize: chunkBytes })
      const fed = feed(decoder, file, at)
      yield* decoder
      at = await fed
      // gzip(1) disregards zeros behind the data, too.
      if (name === 'gzip' && !(await hasData(file, at))) return
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'Z_BUF_ERROR') throw new InputError(`the ${name} data is cut short`)
    if (!/^(Z_|ZSTD_)/.test(`${code}`)) throw error
    throw new InputError(`the ${name} data is damaged: ${message}`)
  }
}

async function hasData(file: FileHandle, start: number): Promise<boolean> {
  for await (const chunk of readBytes(file, start)) if (chunk.some(Boolean)) return true
  return false
}

/**
 * Writes the bytes from `start` on to a decoder until its member or frame has ended; resolves to the offset behind that.
 * Nothing is written after the end, because the decoder would begin the next one.
 */
async function feed(decoder: Gunzip | ZstdDecompress, file: FileHandle, start: number): Promise<number> {
  let fed = 0
  try {
    for await (const chunk of readBytes(file, start)) {
      fed += chunk.length
      if (await new Promise((resolve) => decoder.write(chunk, resolve))) break
      if (decoder.bytesWritten < fed) return start + decoder.bytesWritten
    }
    decoder.end()
  } catch (error) {
    decoder.destroy(error as Error)
  }
  return start + fed
}

async function* readBytes(file: FileHandle, start: number): AsyncGenerator<Buffer> {
  for (let at = start; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}
