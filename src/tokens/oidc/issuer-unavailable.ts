// Why a token of the issuer cannot be judged now.
import { StoreUnavailable } from '../../store/store.ts'

/** Answered as `unread`. The log is told of the issuer once, not of each request. */
export class IssuerUnavailable extends StoreUnavailable {
  constructor() {
    super('unread', 'the keys of the issuer cannot be had')
  }
}

export function tooManyJwts(): StoreUnavailable {
  return new StoreUnavailable('overloaded', 'too many tokens of the issuer wait to be verified')
}
