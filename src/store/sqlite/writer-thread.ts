// The writer thread: opens the file, then runs one transaction per request. A commit is acknowledged only if it
// succeeded and the path still names the open files. After an I/O error the file is reopened.
import { randomBytes } from 'node:crypto'
import { parentPort, workerData } from 'node:worker_threads'
import { attempt } from '../../attempt.ts'
import type { FileId } from '../../file-system.ts'
import { checksumOf, type NoteChange, type Outcome } from '../engine.ts'
import type { FailedOutcome } from '../errors.ts'
import { type Value, writeNote } from '../sql/sql.ts'
import { checkpoint, type OpenDatabase, openDatabase, type WriterOptions } from './database.ts'
import { isBroken, isFull, isSyncFailure } from './errors.ts'
import { cutWal, makeWalCheck } from './files.ts'
import { marginMs, pause, sharedMs, untilFree } from './locks.ts'
import { watchWal } from './lost-wal.ts'

/** Items and their ids: posting two flat arrays is several times faster than an object per plant. */
type Batch = { items: string[]; ids: (number | undefined)[]; notes?: NoteChange[] | undefined }
type Statement = { text: string; values: Value[] }
export type Work = Batch | Statement
/** `deadlineMs`: of `sharedMs`. */
export type Request = Work & { deadlineMs: number }

export type Done = Outcome[] | number
/** Requests are answered in order. Before that, the thread sends the ids of the open files. */
export type Answer = { done: Done } | { outcome: FailedOutcome; failed: string }

const lossCheckMs = 500
/** Number of pages (of 4 KiB) at which the write-ahead log is checkpointed. */
const checkpointPages = 4000
/** Time that `close` waits for programs that prevent a complete checkpoint. */
const othersMs = 1000
const unwritten =
  'the write-ahead log of a lost database was not emptied: move the database back beside it, or move the log away before you restore a backup'
const unsynced = 'fsync of the database failed; the latest plants may be lost: check the disk, then restart'

const options: WriterOptions = workerData
const post = (message: FileId[] | Answer) => parentPort?.postMessage(message)

let database = openDatabase(options)
let transactions = makeTransactions(database)
const lostWal = watchWal(database.files, database.descriptor, database.wal)

parentPort?.on('message', (order: Request | 'close') => {
  if (order !== 'close') return run(order)
  close()
  process.exit()
})
post(database.files.ids)
setInterval(lostWal.recordLoss, lossCheckMs).unref()

/** Runs and answers a request. Throws, which ends the process, if acknowledged plants may be lost. */
function run(request: Request): void {
  /** Outcome if an error is thrown: `unknown` from COMMIT on, unless the disk is full. */
  let outcome: FailedOutcome = 'nothing-added'
  try {
    // Reopens the file if the last error left its state unknown, or the disk was full when it was opened.
    if (!database.isSound) reopen()
    const done = transactions.change(request)
    outcome = 'unknown'
    transactions.commit()
    post({ done })
  } catch (error) {
    const { message, cause: reason = error } = error as Error
    if (!rollBack(database) || isBroken(error)) database.isSound = false
    // Even at COMMIT, which writes its commit frame to the log last.
    else if (isFull(error)) outcome = 'nothing-added'
    post({ outcome, failed: isFull(error) ? `${message}: ${options.path}` : message })
    if (reason === cutWal) throw error
    if (isSyncFailure(reason)) throw new Error(message, { cause: unsynced })
  }
}

function reopen(): void {
  database.files.check()
  // If the log could not be written back, it is read again.
  attempt(close)
  database = openDatabase({ ...options, create: false }, database)
  if (!database.isSound) throw new Error(`database or disk is full: ${options.path}`)
  transactions = makeTransactions(database)
}

/** Returns false if the rollback failed: the state of the database is then unknown. */
function rollBack({ db }: OpenDatabase): boolean {
  const isDone = attempt(() => {
    if (db.isOpen && db.isTransaction) db.exec('ROLLBACK')
    return true
  })
  return isDone ?? false
}

/** Closes the database. Throws if its write-ahead log was lost, and could not be written back. */
function close(): void {
  try {
    writeBackLost()
  } catch (error) {
    throw new Error((error as Error).message, { cause: isSyncFailure(error) ? unsynced : unwritten })
  } finally {
    if (database.db.isOpen) database.db.close()
  }
}

/** Writes a lost log back into its database once no other program uses it, unless another program has taken it over. */
function writeBackLost(): void {
  const endMs = performance.now() + othersMs
  while (lostWal.isLeft()) {
    const use = lostWal.findUse()
    if (use === 'taken') return
    if (use === 'needed') throw new Error('the latest plants exist only in the write-ahead log')
    if (use === 'ours') {
      const result = database.db.prepare('PRAGMA wal_checkpoint(TRUNCATE)').get()
      // `log` and `checkpointed` are numbers of pages; -1 if another checkpoint is running.
      const { log: pages, checkpointed } = result as { log: number; checkpointed: number }
      lostWal.recordOwnChange()
      if (pages >= 0 && pages === checkpointed && lostWal.isDeleted()) return
    }
    if (performance.now() > endMs) throw new Error(`another program is using ${options.path}`)
    pause()
  }
}

/** Prepares the two steps of a transaction, which runs a request atomically and at most once. */
function makeTransactions({ db, files, wal }: OpenDatabase) {
  // Parsing BEGIN and COMMIT for each transaction would take 4 % of its time.
  const begin = db.prepare('BEGIN IMMEDIATE')
  const commit = db.prepare('COMMIT')
  const readHead = db.prepare('SELECT coalesce(max(position), 0) AS position FROM plants')
  const insert = db.prepare(`
    INSERT INTO plants (position, id, item, mark, checksum) VALUES (?, ?, ?, ?, ?)
    ON CONFLICT (id) WHERE id IS NOT NULL DO NOTHING`)
  const findItem = db.prepare('SELECT item FROM plants WHERE id = ?')
  const checkWal = makeWalCheck(db, files, wal)

  const execute = ({ text, values }: Statement) =>
    Number(db.prepare(text.replaceAll('$', '?')).run(...values).changes)

  /** Adds a batch with a new mark of 64 random bits. Returns the outcomes in the order of the entries. */
  function add({ items, ids, notes = [] }: Batch): Outcome[] {
    const mark = randomBytes(8).toString('base64url')
    let position = Number(readHead.get()?.position)
    const outcomes = items.map((item, index) => {
      const plant = { position: position + 1, id: ids[index] ?? null, item, mark }
      const { changes } = insert.run(plant.position, plant.id, item, mark, checksumOf(plant))
      if (changes === 0) return findItem.get(plant.id)?.item === item ? 'replayed' : 'conflict'
      position++
      return 'added'
    })
    for (const note of notes)
      if (execute(writeNote(note)) !== 1) throw new Error(`the note ${note.key} has changed`)
    return outcomes
  }

  return {
    change(request: Request): Done {
      checkWal()
      const waitMs = request.deadlineMs - marginMs - sharedMs()
      if (waitMs < 0) throw new Error('the deadline is too close')
      untilFree(() => begin.run(), waitMs)
      files.check()
      return 'items' in request ? add(request) : execute(request)
    },
    commit(): void {
      commit.run()
      files.check(lostWal.recordOwnChange)
      // If the disk is full, the plants are durable in the log.
      if (checkWal() >= checkpointPages) checkpoint(db, 'PASSIVE')
    },
  }
}
