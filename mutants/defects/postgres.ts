// Defects of the PostgreSQL engine: the order of the log, which server is believed, what happens exactly once.
import { type Defect, inTest } from '../defect.ts'

export const postgresDefects: Defect[] = [
  {
    breaks: 'the head is not locked: two replicas give one position twice',
    file: 'src/store/postgres/writer.ts',
    search: ' AS table FROM head FOR UPDATE',
    replacement: ' AS table FROM head',
    checks: [inTest('replicas', 'readers page through two replicas')],
  },
  {
    breaks: 'a batch whose answer was lost is added again',
    file: 'src/store/postgres/writer.ts',
    search: 'if (sent && (await this.#lastBatch(session, head)) !== batch) sent = undefined',
    replacement: 'if (sent) sent = undefined',
    checks: [inTest('lost-answers', 'a connection that breaks after the commit')],
  },
  {
    breaks: 'what an old primary shows is believed',
    file: 'src/store/postgres/servers.ts',
    search: 'return origin.name === this.#followed?.name',
    replacement: 'return origin.system === this.#followed?.system',
    checks: [inTest('postgres-servers', 'an old primary that nobody stopped')],
  },
  {
    breaks: 'a list from PostgreSQL misses plants whose segment is not there',
    file: 'src/store/postgres/items.ts',
    search: 'if (count === last - after && owner === epoch)',
    replacement: 'if (owner === epoch)',
    checks: [inTest('segments', 'PostgreSQL: lists come from segments where they are')],
  },
]
