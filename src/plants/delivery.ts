// Delivers answers to requests that waited together, one by one, so that a fault in one affects no other.
import type { FastifyReply } from 'fastify'
import { exchangeOf, waits } from '../http/connection/in-flight.ts'
import type { TimeSlices } from '../runtime/time-slices.ts'

/** Callbacks for a waiting request. */
export type Recipient<T> = {
  /** True while somebody still waits for the answer. */
  waits(waiting: T): boolean
  /** The owner of the request: answers are delivered to owners in turn. */
  owner?(waiting: T): string
  fail(error: unknown, waiting: T): void
}

export const replies: Recipient<FastifyReply> = {
  waits,
  owner: ({ request }) => exchangeOf(request).owner,
  fail: (error, reply) => void reply.send(error),
}

/** Makes a function that answers a request that still waits; when `answer` throws, with the error. */
export function makeDelivery<T>({ waits, owner, fail }: Recipient<T>, slices: TimeSlices) {
  return (waiting: T, answer: (waiting: T) => void): void => {
    slices.run(() => {
      if (!waits(waiting)) return
      try {
        answer(waiting)
      } catch (error) {
        fail(error, waiting)
      }
    }, owner?.(waiting))
  }
}

/** Makes an answer that fails. */
export function failWith(error: unknown): () => never {
  return () => {
    throw error
  }
}
