// Defects of what operators rely on: settings, readiness, copies, a quiet end.
import { type Defect, inTest } from '../defect.ts'

export const operationDefects: Defect[] = [
  {
    breaks: 'a port of 65536 is taken',
    file: 'src/config/values.ts',
    search: 'port > 65_535',
    replacement: 'port > 65_536',
    checks: [inTest('config', 'a bad value is one clear line')],
  },
  {
    breaks: 'a service is ready whose store cannot be written',
    file: 'src/admin/health.ts',
    search: "return isWritable ? undefined : 'store-not-writable'",
    replacement: 'return isWritable && undefined',
    checks: [inTest('admin', 'a store that cannot be written')],
  },
  {
    breaks: 'a copy is not compared with what it was made of',
    file: 'src/copy/plants.ts',
    search: 'if (formatPlants(copied) === text) return text',
    replacement: 'if (formatPlants(copied) !== undefined) return text',
    checks: [inTest('copy-refused', 'SQLite: a plant that the target keeps otherwise')],
  },
  {
    breaks: 'a list that the end cuts off ends like a whole one',
    file: 'src/http/in-flight.ts',
    search: 'for (const { raw } of [...this.#open]) raw.socket.resetAndDestroy()',
    replacement: 'for (const { raw } of [...this.#open]) raw.socket.destroySoon()',
    checks: [inTest('shutdown', 'a list that the end cuts off')],
  },
  {
    breaks: 'a stopping service does not say that the connection ends',
    file: 'src/http/in-flight.ts',
    search: 'if (via.latest) via.endAfter(via.latest)',
    replacement: 'if (via.latest) void via',
    checks: [inTest('shutdown', 'a request that is being sent when the signal comes')],
  },
]
