// The writer thread: the only connection that changes the SQLite file. It answers each message with one message.

import { randomBytes } from 'node:crypto'
import { closeSync, existsSync, fsyncSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { parentPort, workerData } from 'node:worker_threads'
import { checkVersion, migrations } from '../migrations.ts'
import { type Outcome, StoreRefused } from '../store.ts'
import type { WriterAnswer, WriterRequest } from './writer.ts'

/** 'plnt': how a file is known as ours (SQLite, pragma application_id). */
const applicationId = 0x706c6e74
const busyTimeoutMs = 5000
const headerBytes = 100
/** Of 4 KiB each: the write-ahead log is copied into the file when it is this long. */
const checkpointPages = 4000

const path = workerData as string
const port = parentPort as NonNullable<typeof parentPort>

const db = openDatabase()
if (db) {
  const answer = makeAnswers(db)
  port.on('message', (request: WriterRequest) => {
    if (request === 'close') {
      db.close()
      port.postMessage({ done: 0 })
      port.close()
    } else {
      port.postMessage(answer(request))
    }
  })
}

/** Opens, checks and migrates the file, and says on the port how it went. */
function openDatabase(): DatabaseSync | undefined {
  try {
    const size = existsSync(path) ? statSync(path).size : 0
    if (size > 0) inspect(size)
    const opened = new DatabaseSync(path, { timeout: busyTimeoutMs })
    // FULL: a commit returns once the write-ahead log is on stable storage (sqlite.org/pragma.html#pragma_synchronous).
    opened.exec('PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA fullfsync = ON')
    opened.exec(`PRAGMA wal_autocheckpoint = ${checkpointPages}`)
    migrate(opened)
    syncDirectory()
    port.postMessage({ done: 0 })
    return opened
  } catch (error) {
    const reason =
      error instanceof StoreRefused ? error.message : `cannot open ${path}: ${(error as Error).message}`
    port.postMessage({ refused: reason })
    port.close()
    return undefined
  }
}

/** Looks at a file without changing it. */
function inspect(size: number): void {
  // SQLite takes what is shorter than its header for an empty file.
  if (size < headerBytes) throw new StoreRefused(`${path} is not a plant store`)
  const file = new DatabaseSync(path, { readOnly: true })
  try {
    checkVersion(Number(file.prepare('PRAGMA user_version').get()?.user_version))
    const mark = file.prepare('PRAGMA application_id').get()?.application_id
    const tables = file.prepare('SELECT count(*) AS n FROM sqlite_schema').get()?.n
    if (mark !== applicationId && tables !== 0) throw new StoreRefused(`${path} is not a plant store`)
  } finally {
    file.close()
  }
}

function migrate(opened: DatabaseSync): void {
  const version = opened.prepare('PRAGMA user_version')
  version.setReturnArrays(true)
  const readVersion = () => (version.get() as unknown as [number])[0]
  if (readVersion() === migrations.length) return
  opened.exec('BEGIN IMMEDIATE')
  for (const { sqlite } of migrations.slice(readVersion())) opened.exec(sqlite)
  opened.exec(`PRAGMA user_version = ${migrations.length}; PRAGMA application_id = ${applicationId}`)
  opened
    .prepare("INSERT INTO meta VALUES ('store', ?) ON CONFLICT DO NOTHING")
    .run(randomBytes(16).toString('base64url'))
  opened.exec('COMMIT')
}

/** So that a new file is still in its directory after a power failure. */
function syncDirectory(): void {
  /* c8 ignore next: there a directory cannot be opened, and need not be */
  if (process.platform === 'win32') return
  const directory = openSync(dirname(path), 'r')
  fsyncSync(directory)
  closeSync(directory)
}

function makeAnswers(opened: DatabaseSync): (request: Exclude<WriterRequest, 'close'>) => WriterAnswer {
  const begin = opened.prepare('BEGIN IMMEDIATE')
  const commit = opened.prepare('COMMIT')
  const head = opened.prepare('SELECT coalesce(max(position), 0) FROM plants')
  head.setReturnArrays(true)
  const insert = opened.prepare(
    'INSERT INTO plants VALUES (?, ?, ?) ON CONFLICT (id) WHERE id IS NOT NULL DO NOTHING',
  )
  const known = opened.prepare('SELECT item FROM plants WHERE id = ?')
  known.setReturnArrays(true)

  function append(flat: (string | number | undefined)[]): Outcome[] {
    begin.run()
    let position = (head.get() as unknown as [number])[0]
    const outcomes: Outcome[] = []
    for (let i = 0; i < flat.length; i += 2) {
      const item = flat[i] as string
      const id = (flat[i + 1] ?? null) as number | null
      if (insert.run(position + 1, id, item).changes === 1) {
        position++
        outcomes.push('added')
      } else {
        outcomes.push((known.get(id) as unknown as [string])[0] === item ? 'replayed' : 'conflict')
      }
    }
    commit.run()
    return outcomes
  }

  return (request) => {
    try {
      if ('append' in request) return { done: append(request.append) }
      return { done: Number(opened.prepare(request.text).run(request.values).changes) }
    } catch (error) {
      if (opened.isTransaction) opened.exec('ROLLBACK')
      const { message, errcode = 0 } = error as Error & { errcode?: number }
      return { failed: message, code: errcode }
    }
  }
}
