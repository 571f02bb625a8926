// A thread that opens SQLite files one after another, each at the moment at which other threads do. It posts what became
// of each: `open`, or why it was refused.
import { parentPort, workerData } from 'node:worker_threads'
import { openDatabase } from '../../src/store/sqlite/database.ts'

/** `arrived`: for each file, the number of threads that are there, of `threads`. */
export type OpenerData = { paths: string[]; arrived: Int32Array; threads: number }

const { paths, arrived, threads } = workerData as OpenerData
for (const [index, path] of paths.entries()) {
  Atomics.add(arrived, index, 1)
  Atomics.notify(arrived, index)
  for (let there = 0; there < threads; there = Atomics.load(arrived, index))
    Atomics.wait(arrived, index, there)
  parentPort?.postMessage(open(path))
}

function open(path: string): string {
  try {
    openDatabase({ path, create: true }).db.close()
    return 'open'
  } catch (error) {
    return String(error)
  }
}
