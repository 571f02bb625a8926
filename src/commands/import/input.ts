// Opens the input of an import, so that it can be read twice: a file, or a pipe that is copied into an unnamed file first.
import { createHash, randomUUID } from 'node:crypto'
import { realpathSync, rmSync } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { addAbortSignal } from 'node:stream'
import { pipeline } from 'node:stream/promises'
import { createGunzip, createZstdDecompress } from 'node:zlib'
import { CommandError } from '../../cli/console.ts'
import { InputError, maxRecordBytes } from './records.ts'

/** What is read at a time, whose plants are added in one transaction. */
const chunkBytes = 128 * 1024
const byteOrderMark = Buffer.from('\ufeff')

export type Chunks = AsyncGenerator<Buffer, undefined>
export type Input = Awaited<ReturnType<typeof openInput>>

/**
 * Opens a file, or stdin as `-`. `path`: of a regular file, without links; `read`: reads the text from its beginning;
 * `readHead`: its first bytes.
 */
export async function openInput(name: string, signal: AbortSignal) {
  const given = name === '-' ? undefined : await open(name)
  const isFile = (await given?.stat())?.isFile() === true
  const file = given && isFile ? given : await copyPipe(given, signal)
  const readHead = async () => {
    for await (const chunk of readText(file)) return chunk
    return Buffer.alloc(0)
  }
  const path = isFile ? realpathSync(name) : undefined
  return { path, read: () => readText(file), readHead, close: () => file.close() }
}

async function copyPipe(pipe: FileHandle | undefined, signal: AbortSignal): Promise<FileHandle> {
  const copy = await openUnnamed()
  try {
    await copy.writeFile(
      addAbortSignal(signal, pipe?.createReadStream({ autoClose: false }) ?? process.stdin),
    )
    return copy
  } catch (error) {
    await copy.close()
    return refuseCopy(error as Error)
  } finally {
    await (pipe ? pipe.close() : process.stdin.destroy())
  }
}

/** Creates a file without a name, which is gone when it is closed, however the process ends. */
export async function openUnnamed(): Promise<FileHandle> {
  const path = join(tmpdir(), `plant-store-${randomUUID()}`)
  const file = await open(path, 'wx+', 0o600).catch(refuseCopy)
  rmSync(path)
  return file
}

function refuseCopy(error: NodeJS.ErrnoException): never {
  if (error.syscall !== 'open' && error.syscall !== 'write') throw error
  throw new CommandError(`cannot write a temporary file in ${tmpdir()} (TMPDIR): ${error.message}`)
}

/** Reads the text, decompressed and without a byte order mark, in chunks of at least `chunkBytes` but the last. */
async function* readText(file: FileHandle): Chunks {
  const { buffer } = await file.read(Buffer.alloc(4), 0, 4, 0)
  const coding = codings.find(({ magic }) => magic.test(buffer.toString('hex')))
  let [rest, isFirst] = [Buffer.alloc(0), true]
  const take = () => {
    const chunk = isFirst && rest.indexOf(byteOrderMark) === 0 ? rest.subarray(byteOrderMark.length) : rest
    ;[rest, isFirst] = [Buffer.alloc(0), false]
    return chunk
  }
  for await (const chunk of coding ? decode(coding, readBytes(file)) : readBytes(file)) {
    rest = Buffer.concat([rest, chunk])
    if (rest.length >= chunkBytes) yield take()
  }
  yield take()
}

async function* readBytes(file: FileHandle): Chunks {
  for (let at = 0; ; ) {
    const { bytesRead, buffer } = await file.read(Buffer.allocUnsafe(chunkBytes), 0, chunkBytes, at)
    if (bytesRead === 0) return
    at += bytesRead
    yield buffer.subarray(0, bytesRead)
  }
}

/** A write is called back once the decoder has consumed it, and only then the next is made. */
const options = { chunkSize: chunkBytes, writableHighWaterMark: 1 }
/** `magic`: of the first four bytes; zstd may begin with a frame to be skipped. `padding`: may follow (gzip(1)). */
const codings = [
  { name: 'gzip', magic: /^1f8b/, padding: 0, open: () => createGunzip(options) },
  { name: 'zstd', magic: /^(28b52ffd|5.2a4d18)/, open: () => createZstdDecompress(options) },
]

/** Decodes members or frames in a row. Node's decoder of zstd stops silently where a frame ends. */
async function* decode({ name, padding, open }: (typeof codings)[number], chunks: Chunks): Chunks {
  let chunk: Buffer | undefined = (await chunks.next()).value
  while (chunk) {
    const decoder = open()
    const feed = async function* () {
      for (let fed = 0; chunk; chunk = (await chunks.next()).value) {
        fed += chunk.length
        yield chunk
        const unread = fed - decoder.bytesWritten
        if (unread === 0) continue
        chunk = chunk.subarray(-unread)
        return
      }
    }
    const fed = pipeline(feed, decoder)
    fed.catch(() => {})
    try {
      yield* decoder
      await fed
    } catch (error) {
      const { code, message } = error as NodeJS.ErrnoException
      if (code === 'Z_BUF_ERROR') throw new InputError(`the ${name} data is cut short`)
      throw /^(Z_|ZSTD_)/.test(`${code}`) ? new InputError(`the ${name} data is damaged: ${message}`) : error
    }
    while (chunk?.every((byte) => byte === padding)) chunk = (await chunks.next()).value
  }
}

/** Follows what is read. `hash` returns the SHA-256 (hex) of its first bytes, never of fewer than before. */
export function makePrefix() {
  const sha256 = createHash('sha256')
  let [hashed, rest] = [0, Buffer.alloc(0)]
  const hash = (bytes: number): string => {
    const part = rest.subarray(0, Math.max(0, bytes - hashed))
    sha256.update(part)
    hashed += part.length
    rest = rest.subarray(part.length)
    return sha256.copy().digest('hex')
  }
  const follow = async function* (chunks: Chunks): Chunks {
    for await (const chunk of chunks) {
      // A record may end in the last bytes that is known to end only behind them.
      hash(hashed + rest.length - 2 * maxRecordBytes)
      rest = Buffer.concat([rest, chunk])
      yield chunk
    }
  }
  return { follow, hash }
}
