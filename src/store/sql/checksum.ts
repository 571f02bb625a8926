// The text of a row of the log, and its checksum. `verify` compares it to find corrupt rows.
import { crc32 } from 'node:zlib'
import type { StoredPlant } from '../engine.ts'

type Row = Omit<StoredPlant, 'checksum'>

/** Returns position, id (empty if there is none), mark and item, separated by tabs. */
export const textOf = ({ position, id, mark, item }: Row) => `${position}\t${id ?? ''}\t${mark}\t${item}`

/** CRC-32 over the text of a row in UTF-8. */
export const checksumOf = (row: Row) => crc32(textOf(row))

/** True if a plant does not match its checksum. */
export const isDamaged = (plant: StoredPlant) => checksumOf(plant) !== plant.checksum
