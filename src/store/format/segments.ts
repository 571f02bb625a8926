// Segments: the items of so many plants in a row, kept as one text beside the plants once the last of them is there. A
// long list takes a few of these rows instead of thousands. The plants themselves say what is true: a segment that is not
// there, because an older version added its last plant, is missed by nobody.
import { segmentBytes, segmentPlants } from '../../limits.ts'
import type { Dialect } from '../view.ts'

/** The tables that items are read from. */
export type Source = 'segments' | 'plants'

/** From where the plants of a range can be read, the fastest first: from segments only when they fill some. */
export function findSources(after: number, last: number): Source[] {
  const fillSegments = last > after && after % segmentPlants === 0 && last % segmentPlants === 0
  return fillSegments ? ['segments', 'plants'] : ['plants']
}

/** Last positions of the segments that are complete once the log has grown from `start` to `end` plants. */
export function segmentEnds(start: number, end: number): number[] {
  const ends: number[] = []
  for (let last = start - (start % segmentPlants) + segmentPlants; last <= end; last += segmentPlants)
    ends.push(last)
  return ends
}

/**
 * The statement that keeps the segment that ends at $1, unless it is there already, or too long to be one part of a list:
 * large plants take no longer one by one.
 */
export function keepSegment({ joinedItems: items }: Dialect): string {
  return `INSERT INTO segments SELECT CAST($1 AS BIGINT), ${items} FROM plants
    WHERE position > $1 - ${segmentPlants} AND position <= $1 AND NOT EXISTS (SELECT 1 FROM segments WHERE last = $1)
    HAVING count(*) = ${segmentPlants} AND octet_length(${items}) <= ${segmentBytes}`
}
