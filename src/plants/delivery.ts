// Delivers answers to requests that waited together, at once: one that is put off leaves the processor's caches, and
// survives collections.
import type { FastifyReply } from 'fastify'
import { waits } from '../http/connection/in-flight.ts'

/** Callbacks for a waiting request. */
export type Recipient<T> = {
  /** True while somebody still waits for the answer. */
  waits(waiting: T): boolean
  fail(error: unknown, waiting: T): void
}

export const replies: Recipient<FastifyReply> = {
  waits,
  fail: (error, reply) => void reply.send(error),
}

/** Answers a request that still waits; when `answer` throws, with the error, so that the fault affects no other. */
export function deliver<T>(recipient: Recipient<T>, waiting: T, answer: (waiting: T) => void): void {
  if (!recipient.waits(waiting)) return
  try {
    answer(waiting)
  } catch (error) {
    recipient.fail(error, waiting)
  }
}

/** Makes an answer that fails. */
export function failWith(error: unknown): () => never {
  return () => {
    throw error
  }
}
