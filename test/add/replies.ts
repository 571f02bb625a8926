// Replies to nobody, for what waits for a batch or a head without a service around it.
import type { FastifyReply } from 'fastify'
import type { FailedOutcome } from '../../src/store/errors.ts'

export type Waiting = {
  isGone?: () => boolean
  fail?: (error: unknown) => void
  /** From now on this is the outcome when the time is up. */
  noteOutcome?: (outcome: FailedOutcome) => void
}

export function makeReply({ isGone = () => false, fail, noteOutcome }: Waiting): FastifyReply {
  const exchange = {
    set timeoutOutcome(outcome: FailedOutcome) {
      noteOutcome?.(outcome)
    },
  }
  const socket = {
    get destroyed() {
      return isGone()
    },
  }
  const reply = { raw: { headersSent: false }, request: { raw: { exchange, socket } }, send: fail }
  return reply as unknown as FastifyReply
}
