// The text of a plant: what the log keeps, what retries are compared with, and what every answer shows. A plant is
// serialized once in its life.
import buildSerializer from 'fast-json-stringify'
import { Plant } from '../../schemas/plant.ts'

/**
 * Names the text that `serializeItem` makes, and stands in every ETag. Change it whenever that text changes, be it only
 * the order of its members: a client must not take a list of one format for the same list in another.
 */
export const itemFormat = 1

/** A plant (or a new one: its id is left out) as JSON. */
export const serializeItem: (plant: Plant) => string = buildSerializer(Plant)
