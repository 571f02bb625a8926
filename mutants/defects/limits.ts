// Defects of limits: who is refused who should not be, and who is not.
import { type Defect, inTest } from '../defect.ts'

const failures = inTest('access/rate-limits', 'failed authentications of an address')

export const limitDefects: Defect[] = [
  {
    breaks: 'a token has one request more than its rate allows',
    file: 'src/http/access/gcra.ts',
    search: 'const allowed = usedUpMs - nowMs <= perMs +',
    replacement: 'const allowed = usedUpMs - nowMs <= perMs + intervalMs +',
    checks: [inTest('access/gcra', 'in any window')],
  },
  {
    breaks: 'a request that is refused costs another one',
    file: 'src/http/access/gcra.ts',
    search: 'if (allowed) cells[time] = usedUpMs',
    replacement: 'cells[time] = usedUpMs',
    checks: [inTest('access/gcra', 'who keeps to the rate')],
  },
  {
    breaks: 'all tokens share their requests',
    file: 'src/http/access/rate-limits.ts',
    search: 'take(owner)',
    replacement: 'take(owner.slice(0, 0))',
    checks: [inTest('access/rate-limits', 'tokens have their requests each')],
  },
  {
    breaks: 'a good token is refused for the failures of others',
    file: 'src/http/access/authentication.ts',
    search: 'isFailure(error) ? countFailure?.(',
    replacement: '1 ? countFailure?.(',
    checks: [inTest('access/rate-limits', 'a token without the scope is no failure')],
  },
  {
    breaks: 'failures are not limited',
    file: 'src/http/access/authentication.ts',
    search: 'return refused ?? error',
    replacement: 'return error ?? refused',
    checks: [failures],
  },
  {
    breaks: 'connections past the limit are served',
    file: 'src/http/max-connections.ts',
    search: 'if (sum(this.#counts) < this.max ||',
    replacement: 'if (sum(this.#counts) <= this.max ||',
    checks: [inTest('http/connections', 'beyond MAX_CONNECTIONS')],
  },
  {
    breaks: 'connections that are refused pile up',
    file: 'src/http/max-connections.ts',
    search: 'if (this.#ending.size >= this.#maxEnding) return',
    replacement: 'if (this.#ending.size < 0) return',
    checks: [inTest('http/connections', 'refused connections that stay open')],
  },
  {
    breaks: 'each refused connection is a line in the log',
    file: 'src/logging/throttle.ts',
    search: 'if (++this.#lines <= this.#most) return true',
    replacement: 'if (++this.#lines > 0) return true',
    checks: [inTest('http/connections', 'refused connections are one line')],
  },
  {
    breaks: 'a request whose body comes late costs two',
    file: 'src/http/access/authentication.ts',
    search: "if (exchange.owner === '') {",
    replacement: '{',
    checks: [inTest('access/rate-limits', 'a request whose token is looked at again')],
  },
  {
    breaks: 'pages that are cached take no room',
    file: 'src/plants/list/answer/list-sender.ts',
    search: '    this.#options.inFlight.hold(exchangeOf(reply.request), list.length, pageShare)\n',
    replacement: '',
    checks: [inTest('http/overload', 'pages that are cached count as in flight')],
  },
]
