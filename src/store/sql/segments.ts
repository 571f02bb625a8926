// Segments: the joined items of a fixed number of plants, stored beside the plants once the last of them is added, so
// that a long list reads a few rows instead of thousands. Segments are optional: where one is missing, because its
// plants are large or an older version added the last of them, reads fall back to the plants.
import { segmentBytes, segmentPlants } from '../../limits.ts'
import type { Dialect } from './sql.ts'

/** The tables that items are read from. */
export type Source = 'segments' | 'plants'

/** The tables to try for a range, fastest first: segments only if the range consists of whole ones. */
export function findSources(after: number, last: number): Source[] {
  const fillSegments = last > after && after % segmentPlants === 0 && last % segmentPlants === 0
  return fillSegments ? ['segments', 'plants'] : ['plants']
}

/** Last positions of the segments that are completed when the log grows from `start` to `end` plants. */
export function segmentEnds(start: number, end: number): number[] {
  const ends: number[] = []
  for (let last = start - (start % segmentPlants) + segmentPlants; last <= end; last += segmentPlants)
    ends.push(last)
  return ends
}

/**
 * The statement that stores the segment that ends at $1, unless it exists or is too large for a part of a list: large
 * plants are no slower one by one.
 */
export function keepSegment({ join }: Dialect): string {
  const items = join('item', "','")
  return `INSERT INTO segments SELECT CAST($1 AS BIGINT), ${items} FROM plants
    WHERE position > $1 - ${segmentPlants} AND position <= $1 AND NOT EXISTS (SELECT 1 FROM segments WHERE last = $1)
    HAVING count(*) = ${segmentPlants} AND octet_length(${items}) <= ${segmentBytes}`
}
