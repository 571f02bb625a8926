// argv -> one command -> exit code: 0 done, 1 failed, 2 not understood, 130 or 143 interrupted.
import { CommanderError } from 'commander'
import { ConfigError } from './config/values.ts'
import { Interrupted } from './console/interrupt.ts'
import { watchOutput } from './console/output.ts'
import { FileRefused } from './files/new-file.ts'
import { buildProgram } from './program.ts'
import { StoreMissing, StoreRefused, StoreUnavailable } from './store/store.ts'

const whereDatabasesAre =
  'DATABASE_URL or --database-url says where the database is, and a relative path begins at the working directory'

endWithLauncher()
const output = watchOutput()
try {
  await (await buildProgram(process.argv[2])).parseAsync()
} catch (error) {
  process.exitCode = explain(error)
}

/** The launcher in bin/ holds a channel to this process where it cannot become it: closed, the launcher is gone. */
function endWithLauncher(): void {
  const end = () => process.kill(process.pid, 'SIGTERM')
  process.once('disconnect', end)
  process.channel?.unref()
  /* c8 ignore next: what a process that ends by a signal has covered is not known */
  if (process.send && !process.connected) end()
}

function explain(error: unknown): number {
  // Commander has said by itself what it did not understand, or what help was asked for.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  const code = output.explain(error)
  if (code !== undefined) return code
  if (error instanceof StoreUnavailable) {
    console.error(`plant-store: the database cannot be used now: ${error.message}`)
    return 1
  }
  if (error instanceof StoreMissing) {
    console.error(`plant-store: ${error.message}: ${whereDatabasesAre}`)
    return 1
  }
  const operational =
    error instanceof ConfigError ||
    error instanceof StoreRefused ||
    error instanceof FileRefused ||
    error instanceof Interrupted ||
    (error as NodeJS.ErrnoException).code
  /* c8 ignore next: no test can bring about a fault that is not known yet */
  console.error(`plant-store: ${operational ? (error as Error).message : (error as Error).stack}`)
  return error instanceof Interrupted ? error.exitCode : 1
}
