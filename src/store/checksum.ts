// The checksum of a row of the log: what `verify` finds bits with that changed on the disk. No request reads it.
import { crc32 } from 'node:zlib'

/** CRC-32 over the position, the id (or nothing) and the item, with tabs in between, in UTF-8. */
export function checksumOf(position: number, id: number | null | undefined, item: string): number {
  return crc32(`${position}\t${id ?? ''}\t${item}`)
}
