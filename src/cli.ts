// argv -> one command -> exit code: 0 done, 1 failed, 2 not understood, 129, 130 or 143 interrupted.
import { CommanderError } from 'commander'
import { Interrupted } from './cli/console/long-work.ts'
import { watchOutput } from './cli/console/output.ts'
import { buildProgram } from './cli/program.ts'
import { ConfigError, UsageError } from './config/values.ts'
import { printable } from './logging/text-lines.ts'
import { FileRefused } from './runtime/new-file.ts'
import { StoreMissing, StoreRefused, StoreUnavailable } from './store/errors.ts'

const whereDatabasesAre =
  'DATABASE_URL or --database-url says where the database is, and a relative path begins at the working directory'

endWithLauncher()
const codeOfOutput = watchOutput()
try {
  await (await buildProgram(process.argv.slice(2))).parseAsync()
} catch (error) {
  process.exitCode = await explain(error)
}

/** Ends with the launcher in bin/: where that starts this process as a child, their channel closes when it ends. */
function endWithLauncher(): void {
  const end = () => process.kill(process.pid, 'SIGTERM')
  process.once('disconnect', end)
  process.channel?.unref()
  /* c8 ignore next: the launcher was killed before this line; no event says when that is, and a signal leaves no coverage */
  if (process.send && !process.connected) end()
}

async function explain(error: unknown): Promise<number> {
  // Commander has already printed the usage error or the help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  if (error instanceof Interrupted) return error.exitCode
  const code = codeOfOutput(error)
  if (code !== undefined) return code
  const { nameFlags } = await import('./cli/setting-options.ts')
  const line = nameFlags(describe(error as NodeJS.ErrnoException), process.argv.slice(2))
  console.error(`plant-store: ${line}${error instanceof StoreMissing ? `: ${whereDatabasesAre}` : ''}`)
  return error instanceof UsageError ? 2 : 1
}

function describe(error: NodeJS.ErrnoException): string {
  if (error instanceof StoreUnavailable)
    return `the database of DATABASE_URL cannot be used now: ${error.message}`
  const isForeseen = [ConfigError, StoreRefused, FileRefused].some((type) => error instanceof type)
  return isForeseen || error.code ? printable(error.message) : String(error.stack)
}
