// Opens the input of an import (a file or a pipe, which is decompressed and read once), and detects its format.
import { createReadStream, realpathSync, statSync } from 'node:fs'
import { createGunzip, createZstdDecompress, type Gunzip, type ZstdDecompress } from 'node:zlib'
import { NewPlant } from '../../../schemas/plant.ts'
import { attempt } from '../../attempt.ts'

/** The byte order mark of UTF-8, decoded as latin1: one character per byte. */
export const byteOrderMark = '\xef\xbb\xbf'

export const isAscii = (latin1: string) => !/[\x80-\xff]/.test(latin1)
/** Decodes UTF-8 that was decoded as latin1. */
export const decode = (latin1: string) =>
  isAscii(latin1) ? latin1 : Buffer.from(latin1, 'latin1').toString()

/** The input cannot be imported, not even in part. */
export class InputError extends Error {}

/** Minimum size of a chunk, except the last. The plants of a chunk are added in one transaction. */
export const chunkBytes = 128 * 1024

export type Input = ReturnType<typeof openInput>
type Chunks = AsyncGenerator<Buffer, undefined>

/**
 * Opens a file, or stdin for `-`. `path`: of a regular file, with links resolved; `chunks`: the decompressed bytes;
 * `isCut`: true after the last chunk if the file was shortened while it was read.
 */
export function openInput(name: string) {
  const stats = name === '-' ? undefined : statSync(name)
  // A deleted file, which /dev/stdin may be, has no path.
  const path = stats?.isFile() ? attempt(() => realpathSync(name)) : undefined
  const stream = name === '-' ? process.stdin : createReadStream(name, { highWaterMark: chunkBytes })
  const isCut = () => stream.bytesRead < Number(stats?.size)
  return { path, chunks: join(decompress(join(stream))), isCut, close: () => stream.destroy() }
}

/** Joins pieces of any size into chunks. */
async function* join(pieces: AsyncIterable<Buffer>): Chunks {
  let joined = Buffer.alloc(0)
  for await (const piece of pieces) {
    joined = Buffer.concat([joined, piece])
    if (joined.length < chunkBytes) continue
    yield joined
    joined = Buffer.alloc(0)
  }
  if (joined.length > 0) yield joined
}

/** `magic`: the first bytes, in hex; zstd may begin with a skippable frame. */
const codings = [
  { name: 'gzip', magic: /^1f8b/, open: createGunzip },
  { name: 'zstd', magic: /^(28b52ffd|5.2a4d18)/, open: createZstdDecompress },
]

/** Decompresses all members or frames, if there are any. Node's zstd decoder would silently ignore all but the first. */
async function* decompress(chunks: Chunks) {
  let { value: rest } = await chunks.next()
  const magic = rest?.toString('hex', 0, 4) ?? ''
  const coding = codings.find((one) => one.magic.test(magic))
  try {
    while (coding && rest) {
      const decoder = coding.open({ chunkSize: chunkBytes })
      const fed = feed(decoder, rest, chunks).catch((error): undefined => void decoder.destroy(error))
      yield* decoder
      rest = await fed
    }
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (!/^(Z_|ZSTD_)/.test(`${code}`)) throw error
    const reason = code === 'Z_BUF_ERROR' ? 'is truncated' : `cannot be decompressed: ${message}`
    throw new InputError(`the ${coding?.name} data ${reason}`)
  }
  if (rest) yield rest
  yield* chunks
}

/**
 * Writes chunks to a decoder until its member or frame ends. Resolves to the rest of the last chunk, which is not
 * written, because the decoder would begin the next member.
 */
async function feed(decoder: Gunzip | ZstdDecompress, first: Buffer, chunks: Chunks) {
  let fed = 0
  for (let chunk: Buffer | undefined = first; chunk; chunk = (await chunks.next()).value) {
    fed += chunk.length
    // The reader of the decoder receives its errors.
    await new Promise((resolve) => decoder.write(chunk, resolve))
    if (decoder.bytesWritten < fed) return chunk.subarray(decoder.bytesWritten - fed)
  }
  decoder.end()
}

/** Member or column names by field, if they differ. */
export type Names = Partial<Record<string, string>>
/** `quote`: `none` if quotation marks are literal. */
type Dialect = { delimiter?: string; quote?: string; trim?: true }
/** `map` implies `ignoreUnknown`. */
export type FormOptions = Dialect & { map?: Names; ignoreUnknown?: true }
/** `isUtf8`: the input starts with a byte order mark; `nameOf`: returns the member or column name of a field. */
export type Form = ReturnType<typeof detectForm>

const delimiters = [',', ';', '|', '\t']
export const endsInCr = `has lines that end in CR; convert it with: tr '\\r' '\\n' < FILE`
/** Prefixes of unsupported formats. A damaged first line must not match: it is reported as a fault. */
const others: [beginning: RegExp, reason: string][] = [
  [/^\s*$/, 'is empty, or starts with 128 KiB of white space'],
  [/^PK\x03\x04/, 'is a ZIP archive (XLSX, ODS): save the sheet as CSV (UTF-8), or unpack it: unzip -p FILE'],
  [/^(\xfd7zXZ\0|BZh\d1AY&SY)/, 'is compressed; decompress it with xz -dc or bzip2 -dc'],
  [/^(PAR1\x15|%PDF-|\xd0\xcf\x11\xe0|SQLite format 3\0)/, 'is not a text file: save it as CSV (UTF-8)'],
  [/^(\xff\xfe|[^\0\xfe]\0)/, 'is UTF-16; convert it with: iconv -f utf-16le -t utf-8 FILE'],
  [/^(\xfe\xff|\0[^\0])/, 'is UTF-16; convert it with: iconv -f utf-16be -t utf-8 FILE'],
  // A single line that contains CR, such as "name,tag\rAlder,Alnus\r". A JSON array may be one line.
  [/^(?=[^\n]*\n?$)[^[\n][^\n]*\r(?!\n|$)[^\n]*\n?/, endsInCr],
  [
    // Such as {"total":2,"plants":[{"name": the name of the array replaces $1 in the reason.
    /^\s*\{(?:[^[\]}]|\}(?!\s*\{))*"([^"'\\]*)"\s*:\s*\[\s*[{\]]/,
    `is an object that contains the array "$1"; convert it with: jq -c '.. | .["$1"]? | arrays | .[]' FILE`,
  ],
  [/^\s*\{[^\n]*\},\r?\n/, `has lines that end in a comma; convert it with: sed 's/,[[:space:]]*$//' FILE`],
  [/^\s*\{([^\n]*[[{,])?[ \t\r]*\n/, 'is JSON over several lines; convert it with: jq -c . FILE'],
]

/** Detects the format from the first bytes of the input. Throws InputError. */
export function detectForm(head: Buffer, options: FormOptions) {
  const text = head.toString('latin1').replace(new RegExp(`^${byteOrderMark}`), '')
  const nameOf = (field: string) => options.map?.[field] ?? field
  const [beginning, reason = ''] = others.find(([one]) => one.test(text)) ?? []
  const [begun = ''] = beginning?.exec(text) ?? []
  if (beginning && !beginsWithRecord(text, nameOf))
    throw new InputError(decode(begun.replace(beginning, reason)))
  const [first] = text.trimStart()
  const format = first === '[' ? 'json' : first === '{' ? 'ndjson' : 'csv'
  const delimiter = options.delimiter === 'tab' ? '\t' : (options.delimiter ?? findDelimiter(text))
  const ignoreUnknown = options.ignoreUnknown ?? options.map !== undefined
  return { ...options, format, delimiter, ignoreUnknown, isUtf8: text.length < head.length, nameOf } as const
}

/** True if the first line is an object with the required members of a plant, or JSON before a line with an object. */
function beginsWithRecord(latin1: string, nameOf: (field: string) => string): boolean {
  const [line = '', next = ''] = latin1.trimStart().split('\n', 2)
  const value = attempt(() => JSON.parse(decode(line)))
  const isPlant = NewPlant.required?.every((field) => Object.hasOwn(Object(value), nameOf(field)))
  return value !== undefined && (next.startsWith('{') || isPlant === true)
}

/** Returns the delimiter in a line such as `sep=;`, or the one that splits the header row into the most columns. */
function findDelimiter(text: string): string {
  const [, named] = /^sep=(.)\r?\n/i.exec(text) ?? []
  const bare = text.trimStart().replaceAll(/(?<![^,;|\t\n])"(?:[^"]|"")*"(?=[,;|\t\r\n]|$)/g, '')
  const [header = ''] = bare.split('\n', 1)
  const columns = (delimiter: string) => header.split(delimiter).length
  return named ?? String(delimiters.toSorted((one, other) => columns(other) - columns(one))[0])
}
