// The checksum of a row of the log. `verify` compares it to find corrupt rows.
import { crc32 } from 'node:zlib'
import type { StoredPlant } from '../engine.ts'

/** CRC-32 over position, id (empty if there is none), mark and item in UTF-8, separated by tabs. */
export function checksumOf({ position, id, mark, item }: Omit<StoredPlant, 'checksum'>): number {
  return crc32(`${position}\t${id ?? ''}\t${mark}\t${item}`)
}

/** True if a plant does not match its checksum. */
export const isDamaged = (plant: StoredPlant) => checksumOf(plant) !== plant.checksum
