// The JSON text of a plant: created once, stored in the log, compared with retries, and copied into responses.
import type { TObject } from '@sinclair/typebox'
import buildSerializer from 'fast-json-stringify'
import { Plant } from '../../schemas/plant.ts'

/**
 * The version of the format of `serializeItem`, which is part of every ETag. Increment it with any change of the
 * format, even of the order of members: lists in two formats must not share an ETag.
 */
export const itemFormat = 1

/** Serializes a plant. Omits the id of a new plant. */
export const serializeItem: (plant: Plant) => string = buildSerializer(Plant)

/** Maximum size of an item: strings of maximum length at four bytes per character, and 24 bytes for other values. */
export function longestItemBytes({ properties }: TObject): number {
  let bytes = '{}'.length - ','.length
  for (const [name, { maxLength }] of Object.entries(properties))
    bytes += JSON.stringify(name).length + ':"",'.length + (maxLength === undefined ? 24 : 4 * maxLength)
  return bytes
}
