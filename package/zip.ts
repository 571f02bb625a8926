// Writes a zip archive, for Windows: no tool that is on every machine writes the same bytes twice (APPNOTE.TXT 6.3).
import { readdirSync, readFileSync } from 'node:fs'
import { basename, join, relative, sep } from 'node:path'
import { crc32, deflateRawSync } from 'node:zlib'

const version = 20
/** Names are UTF-8. */
const flags = 0x800
const deflated = 8
/** 1985-10-26 08:15 in the form of MS-DOS. */
const [time, date] = [(8 << 11) | (15 << 5), (5 << 9) | (10 << 5) | 26]

/** All files of a folder, in the order of their names, below the folder's own name. */
export function makeZip(folder: string): Buffer {
  const paths = readdirSync(folder, { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile())
    .map(({ parentPath, name }) => relative(folder, join(parentPath, name)).split(sep).join('/'))
    .toSorted()
  const parts: Buffer[] = []
  const directory: Buffer[] = []
  let offset = 0
  for (const path of paths) {
    const content = readFileSync(join(folder, path))
    const packed = deflateRawSync(content, { level: 9 })
    const name = Buffer.from(`${basename(folder)}/${path}`)
    const head = describe(content, packed.length, name.length)
    const local = Buffer.concat([integers([4, 0x04034b50]), head, name, packed])
    directory.push(integers([4, 0x02014b50], [2, version]), head, ...describePlace(offset), name)
    parts.push(local)
    offset += local.length
  }
  const entries = Buffer.concat(directory)
  const counts: [number, number][] = [2, 2].map((bytes) => [bytes, paths.length])
  const end = integers([4, 0x06054b50], [2, 0], [2, 0], ...counts, [4, entries.length], [4, offset], [2, 0])
  return Buffer.concat([...parts, entries, end])
}

/** What the header of a file and its entry in the directory have in common. */
function describe(content: Buffer, packedBytes: number, nameBytes: number): Buffer {
  const sizes: [number, number][] = [
    [4, crc32(content)],
    [4, packedBytes],
    [4, content.length],
  ]
  const form: [number, number][] = [version, flags, deflated, time, date].map((value) => [2, value])
  return integers(...form, ...sizes, [2, nameBytes], [2, 0])
}

/** No comment, the first disk, no attributes. */
function describePlace(offset: number): Buffer[] {
  return [integers([2, 0], [2, 0], [2, 0], [4, 0], [4, offset])]
}

/** Unsigned, with the lowest byte first. */
function integers(...fields: [bytes: number, value: number][]): Buffer {
  return Buffer.concat(
    fields.map(([bytes, value]) => {
      const field = Buffer.alloc(bytes)
      field.writeUIntLE(value, 0, bytes)
      return field
    }),
  )
}
