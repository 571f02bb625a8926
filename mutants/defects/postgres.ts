// Defects of the PostgreSQL engine: the order of the log, which server is believed, what happens exactly once.
import { type Defect, inTest } from '../defect.ts'

export const postgresDefects: Defect[] = [
  {
    breaks: 'the head is not locked: two replicas give one position twice',
    file: 'src/store/postgres/writer.ts',
    search: ' AS table FROM head FOR UPDATE',
    replacement: ' AS table FROM head',
    checks: [inTest('store/replicas', 'readers page through two replicas')],
  },
  {
    breaks: 'a batch whose answer was lost is sent again',
    file: 'src/store/postgres/writer.ts',
    search: 'if (sent && (await this.#isThere(session, locked, batch))) {',
    replacement: 'if (sent && !session) {',
    checks: [inTest('add/lost-answers', 'a connection that breaks')],
  },
  {
    breaks: 'a batch that was found is called "nothing added" when it is gone again',
    file: 'src/store/postgres/writer.ts',
    search: "sent || wasFound ? 'unknown'",
    replacement: "sent ? 'unknown'",
    checks: [inTest('store/postgres-notes', 'a batch that was found counts as added')],
  },
  {
    breaks: "the first replica that starts takes another application's meta for its own",
    file: 'src/store/postgres/postgres-schema.ts',
    search:
      'if (!isWhole || store === undefined || !(Number(version) > 0)) throw refuseForeign(meta as FoundTable)',
    replacement: 'if (store === undefined) return undefined',
    checks: [inTest('store/postgres-kept', 'tables of another application are refused')],
  },
  {
    breaks: 'what an old primary shows is believed',
    file: 'src/store/postgres/servers.ts',
    search: 'return origin.name === this.#followed?.name',
    replacement: 'return origin.system === this.#followed?.system',
    checks: [inTest('store/postgres-servers', 'an old primary that nobody stopped')],
  },
  {
    breaks: 'a list from PostgreSQL misses plants whose segment is not there',
    file: 'src/store/postgres/items.ts',
    search: 'if (count === last - after && owner === epoch)',
    replacement: 'if (owner === epoch)',
    checks: [inTest('list/segments', 'PostgreSQL: lists come from segments where they are')],
  },
  {
    breaks: 'look-ups that fail are counted as under way for ever',
    file: 'src/store/postgres/links.ts',
    search: 'return await this.#repeat(work, deadlineMs)\n    } finally {\n      this.running--',
    replacement:
      'const done = await this.#repeat(work, deadlineMs)\n      this.running--\n      return done\n    } finally {',
    checks: [inTest('store/postgres', 'failed queries take no room')],
  },
  {
    breaks: 'sessions with servers that are not followed stay open',
    file: 'src/store/postgres/servers.ts',
    search: 'if (other !== winner) other.destroy()',
    replacement: 'if (other === undefined) other.destroy()',
    checks: [inTest('store/postgres', 'of several servers that answer')],
  },
  {
    breaks: 'a connection that is lost is a failure for all that was asked on it',
    file: 'src/store/postgres/links.ts',
    search: 'if (session === this.#session) {',
    replacement: 'if (session) {',
    checks: [inTest('store/postgres-outages', 'a connection that is lost is one failure')],
  },
  {
    breaks: 'a late attempt takes its full time',
    file: 'src/store/postgres/links.ts',
    search: 'Math.min(attemptMs, deadlineMs - performance.now())',
    replacement: 'attemptMs',
    checks: [inTest('store/postgres-vanished', 'an attempt takes no longer')],
  },
  {
    breaks: 'each hundredth batch deletes its own note',
    file: 'src/store/postgres/writer.ts',
    search: 'AND $2 - 1`',
    replacement: 'AND $2`',
    checks: [inTest('store/postgres-notes', 'a batch that deletes the notes before it')],
  },
  {
    breaks: 'a write runs in the transaction of another, behind one that came too late',
    file: 'src/store/postgres/writer.ts',
    search: 'this.#turn = before.then(() => done.promise)',
    replacement: 'this.#turn = done.promise',
    checks: [inTest('store/postgres', 'a write that came too late')],
  },
  {
    breaks: 'a time-out of the database ends an export',
    file: 'src/store/postgres/postgres-view.ts',
    search: 'SET statement_timeout = 0; ',
    replacement: '',
    checks: [inTest('store/postgres', 'a time-out of the database')],
  },
]
