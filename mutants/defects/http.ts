// Defects of the border: what is taken for a request, and what is said of one that is refused.
import { type Defect, inTest } from '../defect.ts'

export const httpDefects: Defect[] = [
  {
    breaks: 'a body in a charset other than UTF-8 is read',
    file: 'src/http/bodies.ts',
    search: "charset && charset.toLowerCase() !== 'utf-8'",
    replacement: "charset && charset.toLowerCase() === 'utf-7'",
    checks: [inTest('bad-requests', 'SQLite', 'other bad requests have their status')],
  },
]
