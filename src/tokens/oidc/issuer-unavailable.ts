// The error when a token of the issuer cannot be verified now.
import { StoreUnavailable } from '../../store/store.ts'

/** Answered as `unread`. The outage of the issuer is logged once, not per request. */
export class IssuerUnavailable extends StoreUnavailable {
  constructor() {
    super('unread', 'the keys of the issuer cannot be had')
  }
}

export function tooManyJwts(): StoreUnavailable {
  return new StoreUnavailable('overloaded', 'too many tokens of the issuer wait to be verified')
}
