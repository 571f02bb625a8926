// The actions of clients and the store in an explored schedule.
import fc from 'fast-check'
import type { Entry } from '../../src/store/engine.ts'
import type { Fault } from '../support/memory-log.ts'

export type Action =
  | { kind: 'add'; id: number | undefined; ends: 'answered' | 'leaves' | 'is late' }
  | { kind: 'list'; after: number; limit: number; leaves: boolean }
  | { kind: 'cut'; lose: number }
  | { kind: 'fault'; fault: Fault }

const add = fc.record({
  kind: fc.constant('add' as const),
  id: fc.option(fc.integer({ min: 0, max: 2 }), { nil: undefined }),
  ends: fc.constantFrom('answered', 'answered', 'answered', 'leaves', 'is late'),
})
const list = fc.record({
  kind: fc.constant('list' as const),
  after: fc.constantFrom(0, 0, 1, 130),
  limit: fc.constantFrom(Number.POSITIVE_INFINITY, Number.POSITIVE_INFINITY, 0, 1, 2, 5, 139),
  leaves: fc.constantFrom(false, false, false, true),
})
const cut = fc.record({ kind: fc.constant('cut' as const), lose: fc.integer({ min: 0, max: 4 }) })
const fault = fc.record({
  kind: fc.constant('fault' as const),
  fault: fc.constantFrom<Fault>('refused', 'lost', 'added-and-lost'),
})
const often = [add, list].map((arbitrary) => ({ weight: 5, arbitrary }))
const action: fc.Arbitrary<Action> = fc.oneof(...often, cut, fault)
/** The actions of each client. */
export const scripts = fc.array(fc.array(action, { minLength: 1, maxLength: 4 }), {
  minLength: 2,
  maxLength: 6,
})

/** Enough plants to be read in two parts; large ones are streamed. */
const many = (bytes: number) =>
  Array.from({ length: 135 }, (_, n) => ({ item: `"${String(n).padEnd(bytes, '.')}"`, id: undefined }))
/** The initial logs. */
export const beginnings: Entry[][] = [[], many(3), many(2050)]
/** The index of an initial log; most are empty, where races are likely. */
export const beginning = fc.constantFrom(0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 2)
