// Defects of the border: what is taken for a request, and what is said of one that is refused.
import { type Defect, inTest } from '../defect.ts'

const bodies = inTest('http/bad-requests', 'SQLite', 'a bad body is 400')
const queries = inTest('http/bad-requests', 'SQLite', 'a bad query is 400')
const garbage = inTest('http/bad-requests', 'SQLite', 'bytes that are no request')

export const httpDefects: Defect[] = [
  {
    breaks: 'a name of 256 characters is taken',
    file: 'schemas/plant.ts',
    search: 'minLength: 1,\n  maxLength: 255,',
    replacement: 'minLength: 1,\n  maxLength: 256,',
    checks: [bodies],
  },
  {
    breaks: 'the control characters U+0080 to U+009F are taken',
    file: 'schemas/plant.ts',
    search: "const control = '\\\\x00-\\\\x1F\\\\x7F-\\\\x9F'",
    replacement: "const control = '\\\\x00-\\\\x1F\\\\x7F'",
    checks: [bodies],
  },
  {
    breaks: 'limit=1e3 is taken for a thousand',
    file: 'src/http/validation.ts',
    search: 'const integerForm = /^-?[0-9]+$/',
    replacement: 'const integerForm = /^-?[0-9]+(e[0-9]+)?$/',
    checks: [queries],
  },
  {
    breaks: 'of a member that is given twice the last one counts',
    file: 'src/validation/json.ts',
    search: 'return names.length === Object.keys(value).length',
    replacement: 'return names.length >= Object.keys(value).length',
    checks: [bodies],
  },
  {
    breaks: 'an id that a double cannot hold is rounded',
    file: 'src/validation/json.ts',
    search: 'return Number.isInteger(Number(source)) && !isInteger(source)',
    replacement: 'return !Number.isInteger(Number(source)) && isInteger(source)',
    checks: [bodies],
  },
  {
    breaks: 'a request with two Host lines is served',
    file: 'src/http/guard.ts',
    search: "if (hosts > 1) return twice('Host')",
    replacement: "if (hosts > 2) return twice('Host')",
    checks: [inTest('http/bad-requests', 'SQLite', 'what is wrong with the head')],
  },
  {
    breaks: 'a transfer coding that is not understood is read as if it were chunked',
    file: 'src/http/guard.ts',
    search: "(minor === 0 || coding.toLowerCase() !== 'chunked')",
    replacement: 'minor === 0',
    checks: [garbage],
  },
  {
    breaks: 'a fault of the service tells the client of its inside',
    file: 'src/http/problems.ts',
    search: 'frameworkErrors[code] ?? other',
    replacement: "frameworkErrors[code] ?? { code: 'internal', detail: error.message }",
    checks: [inTest('http/bad-requests', 'an internal error is 500')],
  },
  {
    breaks: '503 does not say when to come again',
    file: 'src/http/problems.ts',
    search: '...(status === 503 && retryAfter)',
    replacement: '...(status === 502 && retryAfter)',
    checks: [inTest('add/batches', 'a batch that the database refuses')],
  },
  {
    breaks: 'that nothing was added is said where this is unknown',
    file: 'schemas/problems.ts',
    search: "    'outcome-unknown',\n    'The store stopped",
    replacement: "    'nothing-added',\n    'The store stopped",
    checks: [inTest('contract/contract', 'what the service answers is what the document shows')],
  },
  {
    breaks: 'a client that stays after its last answer is never cut',
    file: 'src/http/connection/end-gently.ts',
    search: 'const cut = () => (isLarge ? socket.resetAndDestroy() : socket.destroy())',
    replacement: 'const cut = () => (isLarge ? socket.resetAndDestroy() : undefined)',
    checks: [inTest('http/connections', 'a client that stays after its last answer')],
  },
  {
    breaks: 'pieces of log lines are kept for ever',
    file: 'src/http/access-log.ts',
    search: 'if (pieces.size >= maxPieces) pieces.clear()',
    replacement: '',
    checks: [inTest('service/access-log', 'at most a thousand pieces of lines are cached')],
  },
  {
    breaks: 'an answer below the router does not say that it depends on the origin',
    file: 'src/http/cors.ts',
    search: "return { vary: 'Origin' }",
    replacement: 'return {}',
    checks: [inTest('http/cors', 'an answer to a head that is too large')],
  },
  {
    breaks: 'of a connection that is reset each second request stays open behind one for a tunnel',
    file: 'src/http/connection/in-flight.ts',
    search: 'of [...connection.open])',
    replacement: 'of connection.open)',
    checks: [inTest('http/overload', 'of a connection that is reset')],
  },
  {
    breaks: 'a connection is reset that was silent before its first request',
    file: 'src/http/connection/connection.ts',
    search: 'writableLength === 0 || ',
    replacement: '',
    checks: [inTest('http/time', 'a connection that sent nothing for long')],
  },
]
