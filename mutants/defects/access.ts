// Defects of tokens: whom they let in, for how long, and where they are seen.
import { type Defect, inTest } from '../defect.ts'

export const accessDefects: Defect[] = [
  {
    breaks: 'a token that may only read adds plants',
    file: 'src/http/access/authentication.ts',
    search: 'if (grant.scopes.has(scope)) return true',
    replacement: 'if (grant.scopes.size > 0) return true',
    checks: [inTest('access/authentication', 'SQLite', 'a token does what its scopes say')],
  },
  {
    breaks: 'the body is read before the token is checked',
    file: 'src/plants/add/add-route.ts',
    search: '...route,',
    replacement: '...{ ...route, onRequest: [], preValidation: route.onRequest as never },',
    checks: [inTest('access/authentication', '401 and 403 come before the body')],
  },
  {
    breaks: 'an expired token is good',
    file: 'src/tokens/verifier.ts',
    search: '(token.expiresAt ?? Number.POSITIVE_INFINITY) > now()',
    replacement: 'token.createdAt <= now()',
    checks: [inTest('access/authentication', 'SQLite', 'an expired, a revoked and an altered')],
  },
  {
    breaks: 'a revoked token is good',
    file: 'src/tokens/verifier.ts',
    search: 'same && token.revokedAt === null && ',
    replacement: 'same && ',
    checks: [inTest('access/authentication', 'SQLite', 'an expired, a revoked and an altered')],
  },
  {
    breaks: 'a token with a wrong checksum is looked up',
    file: 'src/tokens/format.ts',
    search: 'body !== undefined && checksum(body) === sum ? id',
    replacement: 'body !== undefined && checksum(body) !== "" ? id',
    checks: [inTest('access/authentication', 'what has not the form of a token')],
  },
  {
    breaks: 'what a token allowed once it allows for ever on its connection',
    file: 'src/http/access/authentication.ts',
    search: 'return kept.grant.untilMs > performance.now() ? kept.grant : undefined',
    replacement: 'return kept.grant',
    checks: [inTest('access/authentication', 'what a token lost')],
  },
  {
    breaks: 'the first token of a connection lets every other one pass',
    file: 'src/http/access/authentication.ts',
    search: 'kept === undefined || !isSame(kept.authorization, raw.headers.authorization)',
    replacement: 'kept === undefined',
    checks: [inTest('access/authentication', 'each request of a connection')],
  },
  {
    breaks: 'the access log holds the token',
    file: 'src/http/connection/exchange.ts',
    search: 'return this.raw.url as string',
    replacement: 'return `${this.raw.url} ${this.raw.headers.authorization}`',
    checks: [inTest('access/authentication', 'of a token the database holds the hash')],
  },
  {
    breaks: 'a token that was good and was revoked is looked up for each request',
    file: 'src/tokens/verifier.ts',
    search: '      good.delete(digest)\n',
    replacement: '',
    checks: [inTest('access/authentication', 'a token that was good and was revoked')],
  },
  {
    breaks: 'keys are taken from wherever the issuer redirects to',
    file: 'src/tokens/oidc/load-keys.ts',
    search: "redirect: 'manual'",
    replacement: "redirect: 'follow'",
    checks: [inTest('access/oidc', 'keys are not taken from where the issuer redirects')],
  },
  {
    breaks: 'a token that met an overload once is 503 until a restart',
    file: 'src/tokens/oidc/issuer-tokens.ts',
    search: '.finally(() => judging.delete(token))',
    replacement: '.then((verdict) => (judging.delete(token), verdict))',
    checks: [inTest('access/oidc', 'a token that came when too many waited')],
  },
]
