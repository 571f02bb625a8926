// Defects of limits: who is refused who should not be, and who is not.
import { type Defect, inTest } from '../defect.ts'

const failures = inTest('rate-limits', 'failed authentications of an address')

export const limitDefects: Defect[] = [
  {
    breaks: 'a token has one request more than its rate allows',
    file: 'src/http/gcra.ts',
    search: 'const allowed = usedUpMs - now <= this.#windowMs +',
    replacement: 'const allowed = usedUpMs - now <= this.#windowMs + this.#intervalMs +',
    checks: [inTest('gcra', 'in any window')],
  },
  {
    breaks: 'a request that is refused costs another one',
    file: 'src/http/gcra.ts',
    search: 'if (!allowed) return this.#describe(allowed, formerMs - now)',
    replacement: '',
    checks: [inTest('gcra', 'who keeps to the rate')],
  },
  {
    breaks: 'all tokens share their requests',
    file: 'src/http/rate-limit.ts',
    search: 'gcra.take(owner)',
    replacement: 'gcra.take(owner.slice(0, 0))',
    checks: [inTest('rate-limits', 'tokens have their requests each')],
  },
  {
    breaks: 'a good token is refused for the failures of others',
    file: 'src/http/authentication.ts',
    search: 'isFailure(error) ? countFailure(',
    replacement: '1 ? countFailure(',
    checks: [failures],
  },
  {
    breaks: 'failures are not limited',
    file: 'src/http/authentication.ts',
    search: 'done(refused ?? error)',
    replacement: 'done(error ?? refused)',
    checks: [failures],
  },
  {
    breaks: 'connections past the limit are served',
    file: 'src/http/max-connections.ts',
    search: 'if (this.#countAll() < this.max) {',
    replacement: 'if (this.#countAll() <= this.max) {',
    checks: [inTest('connections', 'past MAX_CONNECTIONS')],
  },
  {
    breaks: 'connections that are refused pile up',
    file: 'src/http/max-connections.ts',
    search: 'if (this.#ending.size >= this.#maxEnding) return',
    replacement: 'if (this.#ending.size < 0) return',
    checks: [inTest('connections', 'refused connections that do not go')],
  },
  {
    breaks: 'each refused connection is a line in the log',
    file: 'src/http/max-connections.ts',
    search: 'const logEveryMs = 10_000',
    replacement: 'const logEveryMs = 0',
    checks: [inTest('connections', 'refused connections are one line')],
  },
]
