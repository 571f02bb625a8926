// The kinds of problems that say more than their status: each has a URI below the base path, and a page there.

/** `title` and `status` come with every problem of the type; `meaning` and `advice` are Markdown for its page. */
export type ProblemType = {
  readonly status: number
  readonly title: string
  readonly meaning: string
  readonly advice: string
}

export const problemTypes = {
  'invalid-request': {
    status: 400,
    title: 'Invalid request',
    meaning:
      'The request is not what the contract describes. Nothing was changed. `errors` names every fault that was ' +
      'found: a `code` for programs, a `detail` for people, and where it is: `pointer` (a JSON Pointer into the body, ' +
      'RFC 6901) or `parameter` (a query parameter or header).',
    advice: 'Mend what `errors` names and send the request again. Repeating it as it is changes nothing.',
  },
  'id-conflict': {
    status: 409,
    title: 'Id already taken',
    meaning: 'A plant with this `id` already exists with a different `name` or `tag`. Nothing was changed.',
    advice:
      'Choose another `id`, or leave it out. The same plant with its own `id` is a retry, and is answered 200.',
  },
  'precondition-failed': {
    status: 412,
    title: 'Precondition failed',
    meaning:
      'A condition of the request is false. The list is not one that `If-Match` names; or an addition carries ' +
      '`If-Match` or `If-None-Match`, and additions are not conditional. Nothing was changed.',
    advice:
      'Read the list again and take its new `ETag`. Send additions without conditions: an `id` makes them safe.',
  },
  'rate-limited': {
    status: 429,
    title: 'Too many requests',
    meaning:
      'Too many requests came in a short time: with this token, where the service limits the rate of each, or without ' +
      'a valid one from this address. Nothing was changed.',
    advice:
      'Wait as many seconds as `Retry-After` says, then send the request again. It is safe to repeat. Where rates are ' +
      'limited, `RateLimit` says on every answer how many requests are left, and `RateLimit-Policy` how many there ' +
      'are in all. A client without a valid token should ask for one, not try again.',
  },
  'nothing-added': {
    status: 503,
    title: 'Nothing added',
    meaning: 'The store cannot take plants now. It is certain that the plant of this request was not added.',
    advice: 'Wait as many seconds as `Retry-After` says, then send it again. It is safe to repeat.',
  },
  'outcome-unknown': {
    status: 503,
    title: 'Outcome unknown',
    meaning:
      'The store stopped, or ran out of time, while it worked on the request. The plant may have been added, or not.',
    advice:
      'With an `id` in the body, send the same request again: if the plant was added, nothing is added twice. ' +
      'Without an `id` a repetition may add the plant a second time; look at the end of the list first.',
  },
  unread: {
    status: 503,
    title: 'Store not readable',
    meaning: 'The store cannot be read now. Nothing was changed.',
    advice: 'Wait as many seconds as `Retry-After` says, then send the request again. It is safe to repeat.',
  },
  overloaded: {
    status: 503,
    title: 'Overloaded',
    meaning: 'The service has more work at hand than it takes at one moment. Nothing was changed.',
    advice:
      'Wait as many seconds as `Retry-After` says, then send the request again. It is safe to repeat. Send fewer ' +
      'requests at a time, and read answers as they come.',
  },
} as const satisfies Record<string, ProblemType>

export type ProblemTypeName = keyof typeof problemTypes
