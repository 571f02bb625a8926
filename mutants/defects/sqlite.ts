// Defects of the SQLite engine: what is on stable storage, what a batch is, which file is open.
import { type Defect, inTest } from '../defect.ts'

export const sqliteDefects: Defect[] = [
  {
    breaks: 'of two services that make a file at the same moment one is refused',
    file: 'src/store/sqlite/database.ts',
    search: 'untilFree(() => configure(opened))',
    replacement: 'configure(opened)',
    checks: [inTest('store/older-versions', 'a file that another process makes is waited for')],
  },
  {
    breaks: 'of two services that bring a file up to date at the same moment one is refused',
    file: 'src/store/sqlite/database.ts',
    search: 'untilFree(() => {\n      const version = inspect(options)',
    replacement: '[0].forEach(() => {\n      const version = inspect(options)',
    checks: [inTest('store/older-versions', 'a file that another process brings up to date is waited for')],
  },
  {
    breaks: 'a commit does not wait for stable storage',
    file: 'src/store/sqlite/database.ts',
    search: 'synchronous: 2,',
    replacement: 'synchronous: 1,',
    checks: [inTest('store/sync-order')],
  },
  {
    breaks: 'a retry is not compared with the plant that is there',
    file: 'src/store/format/same-item.ts',
    search: 'return a === b || isDeepStrictEqual(JSON.parse(a), JSON.parse(b))',
    replacement: 'return a === b || isDeepStrictEqual(typeof a, typeof b)',
    checks: [inTest('add/adding', 'SQLite', 'the same id with another name or tag')],
  },
  {
    breaks: 'of a batch that fails the beginning is kept',
    file: 'src/store/sqlite/writer/transactions.ts',
    search: "if (this.#db.isTransaction) this.#db.exec('ROLLBACK')",
    replacement: "if (this.#db.isTransaction) this.#db.exec('COMMIT')",
    checks: [inTest('store/log', 'SQLite', 'appends all of a batch or nothing')],
  },
  {
    breaks: 'a file that was replaced is not noticed',
    file: 'src/store/sqlite/files/files.ts',
    search: 'if (!isSameFile(stats, ids[index])) return',
    replacement: 'if (isSameFile(stats, undefined)) return',
    checks: [inTest('store/sqlite-files', 'a path may be a symbolic link')],
  },
  {
    breaks: 'what goes wrong behind a COMMIT is called nothing added',
    file: 'src/store/sqlite/writer/transactions.ts',
    search: "      outcome = 'unknown'\n",
    replacement: '',
    checks: [inTest('store/sqlite-files', 'a file that goes while a batch is at work')],
  },
  {
    breaks: 'a file that cannot be looked at is in order',
    file: 'src/store/sqlite/files/files.ts',
    search: 'return `${name} cannot be looked at (${(error as NodeJS.ErrnoException).code})`',
    replacement: 'return error ? undefined : name',
    checks: [inTest('store/sqlite-files', 'whose path becomes a link to itself')],
  },
  {
    breaks: 'an epoch whose commit failed has begun',
    file: 'src/store/sqlite/writer/transactions.ts',
    search: '      this.#epochIsDue = epochWasDue\n',
    replacement: '',
    checks: [inTest('store/sqlite-writer', 'an epoch whose commit failed')],
  },
  {
    breaks: 'a database of a newer version is written to',
    file: 'src/store/format/migrations.ts',
    search: 'if (compatible > migrations.length)',
    replacement: 'if (compatible > migrations.length + 1000)',
    checks: [inTest('store/tables', 'SQLite', 'of a newer version is refused')],
  },
  {
    breaks: 'a list from SQLite misses plants whose segment is not there',
    file: 'src/store/sqlite/reader.ts',
    search: 'if (count === Math.max(0, last - after) && owner === epoch)',
    replacement: 'if (owner === epoch)',
    checks: [inTest('list/segments', 'SQLite: lists come from segments where they are')],
  },
  {
    breaks: 'a writer that was late once is never asked again',
    file: 'src/store/sqlite/writer/writer-handle.ts',
    search: '    overdue.delete(number)\n',
    replacement: '',
    checks: [inTest('store/sqlite-writer', 'while a request is overdue')],
  },
]
