// Commands on many plants: import, export, backup and verify, beside programs that do no more than they must.
import { fileURLToPath, pathToFileURL } from 'node:url'
import type { Bench } from '../bench.ts'
import { type Contestant, compareCommands, plantStore, timeRatio } from '../commands.ts'
import type { Scenario } from '../findings.ts'
import { atLeast, atMost } from '../goals.ts'
import { requireProgram } from '../processes.ts'
import { medianOf } from '../rounds.ts'
import { type InputFormat, makeIdleStore, makeInput, startPostgres } from '../stores.ts'

const columns = 'name TEXT NOT NULL, tag TEXT NOT NULL'

/** NDJSON and CSV into SQLite, beside the same rows with no checks: in one transaction, and by a program of a few lines. */
export const importFiles: Scenario = {
  name: 'import',
  title: 'import into SQLite',
  unable: requireProgram('sqlite3'),
  async run(bench) {
    const settings = 'PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL'
    const inserter: Contestant = {
      name: 'sqlite3 .import, no checks',
      async plan(plants, path) {
        const rows = `.import --csv --skip 1 ${await makeInput(bench, 'csv', plants)} rows`
        return { command: ['sqlite3', path, settings, `CREATE TABLE rows (${columns})`, rows] }
      },
    }
    const script = fileURLToPath(new URL('../peers/rows.js', import.meta.url))
    const program: Contestant = {
      name: 'node:sqlite, no checks',
      async plan(plants, path) {
        return { command: [process.execPath, script, await makeInput(bench, 'ndjson', plants), path] }
      },
    }
    return compareCommands(bench, {
      work: `import of ${bench.options.listName}, SQLite`,
      contestants: [importer(bench, 'ndjson'), importer(bench, 'csv'), inserter, program],
      judge: ([ndjson, csv, rows, ownRows]) => [
        atMost('time of NDJSON / node:sqlite', timeRatio([ndjson, ownRows]), [2.4, 2]),
        atMost('time of NDJSON / sqlite3', timeRatio([ndjson, rows]), [1.6, 1]),
        atMost('time of CSV / sqlite3', timeRatio([csv, rows]), [2.2, 1.6]),
      ],
    })
  },
}

/** Into PostgreSQL, beside psql's \copy of the same rows into a table of its own. */
export const importPostgres: Scenario = {
  name: 'import-postgres',
  title: 'import into PostgreSQL',
  unable: requireProgram('psql'),
  async run(bench) {
    const server = await startPostgres()
    let databases = 0
    const createDatabase = async () => {
      const name = `bulk_${databases++}`
      await server.query(`CREATE DATABASE ${name}`)
      return server.url(name)
    }
    const table = `CREATE TABLE rows (id BIGSERIAL PRIMARY KEY, ${columns})`
    const copier: Contestant = {
      name: 'psql \\copy, no checks',
      async plan(plants) {
        const copy = `\\copy rows (name, tag) FROM '${await makeInput(bench, 'csv', plants)}' CSV HEADER`
        return { command: ['psql', await createDatabase(), '-q', '-c', table, '-c', copy] }
      },
    }
    const findings = await compareCommands(bench, {
      work: `import of ${bench.options.listName}, PostgreSQL`,
      contestants: [importer(bench, 'ndjson', createDatabase), copier],
      judge: ([ours, theirs]) => [atMost('time / \\copy', timeRatio([ours, theirs]), [3, 1.5])],
    })
    server.destroy()
    return findings
  },
}

/** From SQLite, beside the sqlite3 program that prints the stored text. */
export const exportFile: Scenario = {
  name: 'export',
  title: 'export from SQLite',
  unable: requireProgram('sqlite3'),
  run(bench) {
    const print = `sqlite3 "$0" 'SELECT item FROM plants ORDER BY position' > "$1"`
    return compareCommands(bench, {
      work: `export of ${bench.options.listName}, SQLite`,
      contestants: [
        reader(bench, 'Plant Store, NDJSON', (path) => ['export', path, '--format', 'ndjson']),
        copier(bench, 'sqlite3 > file', (database, path) => ['sh', '-c', print, database, path]),
      ],
      judge: ([ours, theirs]) => [atMost('time / sqlite3', timeRatio([ours, theirs]), [3, 1.5])],
    })
  },
}

/** A SQLite store's backup beside cp, and its verification. */
export const backup: Scenario = {
  name: 'backup',
  title: 'backup and verify',
  async run(bench) {
    const whole = reader(bench, 'Plant Store, copied and checked', (path) => ['backup', path, '--json'])
    const copy: Contestant = {
      name: 'Plant Store, the copy alone',
      plan: whole.plan,
      read: (output) => ({ ms: JSON.parse(output).copySeconds * 1000, cpuUs: Number.NaN }),
    }
    const copies = await compareCommands(bench, {
      work: `backup of ${bench.options.listName}`,
      contestants: [whole, copy, copier(bench, 'cp', (database, path) => ['cp', database, path])],
      judge: ([ofWhole, ofCopy, ofCp]) => [
        atMost('time of the copy / cp', timeRatio([ofCopy, ofCp]), [2, 1.5]),
        atMost('with its check / cp', timeRatio([ofWhole, ofCp]), [2, 1.5]),
      ],
    })
    const checks = await compareCommands(bench, {
      work: `verify of ${bench.options.listName}`,
      contestants: [reader(bench, 'Plant Store', () => ['verify'])],
      judge: ([nets]) => [atLeast('plants/s', medianOf(nets, 'perSecond'), [500_000, 1_000_000], '')],
    })
    return [...copies, ...checks]
  },
}

type MakeUrl = (path: string) => Promise<string> | string
const toFileUrl: MakeUrl = (path) => pathToFileURL(path).href

/** `makeUrl`: that of a new, empty database each time; a SQLite file without it. */
function importer(bench: Bench, format: InputFormat, makeUrl: MakeUrl = toFileUrl): Contestant {
  return {
    name: `Plant Store, ${format.toUpperCase()}`,
    growth: true,
    // The format is named, since that of an empty file cannot be told.
    plan: async (plants, path) =>
      plantStore(await makeUrl(path), ['import', await makeInput(bench, format, plants), '--format', format]),
  }
}

/** A command of Plant Store that reads a store. */
function reader(bench: Bench, name: string, toArguments: (path: string) => string[]): Contestant {
  return {
    name,
    growth: true,
    plan: async (plants, path) => plantStore(await makeIdleStore(bench, plants), toArguments(path)),
  }
}

/** Another program that reads the file of a store. */
function copier(bench: Bench, name: string, toCommand: (from: string, to: string) => string[]): Contestant {
  return {
    name,
    async plan(plants, path) {
      return { command: toCommand(fileURLToPath(await makeIdleStore(bench, plants)), path) }
    },
  }
}
