// The line of a plant, and the checksums made of it. That of each row of the log is what `verify` finds bits with that
// changed on the disk; no request reads it.
import { crc32 } from 'node:zlib'

/** CRC-32 over the line of a plant, in UTF-8. */
export function checksumOf(position: number, id: number | null | undefined, item: string): number {
  return crc32(lineOf(position, id, item))
}

/** Position, id (or nothing) and item, with tabs between them, which no item holds. */
export function lineOf(position: number, id: number | null | undefined, item: string): string {
  return `${position}\t${id ?? ''}\t${item}`
}
