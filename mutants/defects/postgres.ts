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
    breaks: 'a note that is gone is taken as proof that nothing was added',
    file: 'src/store/postgres/writer.ts',
    search: 'if (rows.length > 0) return rows[0].batch',
    replacement: 'if (rows.length >= 0) return rows[0]?.batch',
    checks: [inTest('postgres-notes', 'a note that is gone')],
  },
  {
    breaks: 'what an old primary shows is believed',
    file: 'src/store/postgres/servers.ts',
    search: 'return origin.name === this.#followed?.name',
    replacement: 'return origin.system === this.#followed?.system',
    checks: [inTest('postgres-servers', 'an old primary that nobody stopped')],
  },
  {
    breaks: 'a commit waits for stable storage only where the server is set so',
    file: 'src/store/postgres/session.ts',
    search: "ELSE 'on' END",
    replacement: "ELSE current_setting('synchronous_commit') END",
    checks: [inTest('postgres', 'a commit waits for stable storage')],
  },
  {
    breaks: 'a dump that is put back begins no epoch',
    file: 'src/store/postgres/writer.ts',
    search: 'if (latest !== origin) changes.push',
    replacement: 'if (latest === undefined) changes.push',
    checks: [inTest('postgres-kept', 'a dump that is put back')],
  },
]
