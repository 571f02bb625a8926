// The line of a plant, and its checksum, which each row of the log has. Only `verify` reads it, to find corrupt rows.
import { crc32 } from 'node:zlib'

/** CRC-32 over the line of a plant, in UTF-8. */
export function checksumOf(position: number, id: number | null | undefined, item: string): number {
  return crc32(lineOf(position, id, item))
}

/** Position, id (or nothing) and item, separated by tabs, which no item holds. */
export function lineOf(position: number, id: number | null | undefined, item: string): string {
  return `${position}\t${id ?? ''}\t${item}`
}
