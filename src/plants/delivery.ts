// Delivers answers to requests that waited together, at once: one that is put off leaves the processor's caches, and
// survives collections.
import type { FastifyReply } from 'fastify'
import { waits } from '../http/connection/in-flight.ts'

/** Answers a request that still waits; when `answer` throws, with the error, so that the fault affects no other. */
export function deliver(reply: FastifyReply, answer: (reply: FastifyReply) => void): void {
  if (!waits(reply)) return
  try {
    answer(reply)
  } catch (error) {
    reply.send(error)
  }
}

/** Makes an answer that fails. */
export function failWith(error: unknown): () => never {
  return () => {
    throw error
  }
}
