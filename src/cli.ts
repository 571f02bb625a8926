// argv -> one command -> exit code: 0 done, 1 failed, 2 not understood. A signal ends a command by that signal.
import { CommanderError } from 'commander'
import { CommandError, printable, watchOutput } from './cli/console.ts'
import { buildProgram } from './cli/program.ts'
import { SettingError } from './setting-values.ts'
import { StoreRefused, StoreUnavailable } from './store/errors.ts'

const whereDatabasesAre =
  'DATABASE_URL or --database-url names the database, and a relative path begins at the working directory'
const words = process.argv.slice(2)

endWithLauncher()
const codeOfOutput = watchOutput()
try {
  await (await buildProgram(words)).parseAsync()
} catch (error) {
  process.exitCode = explain(error as NodeJS.ErrnoException)
}

/** Ends with the launcher in bin/: if that started this process as a child, their channel closes when it ends. */
function endWithLauncher(): void {
  const end = () => process.kill(process.pid, 'SIGTERM')
  process.once('disconnect', end)
  process.channel?.unref()
  if (process.send && !process.connected) end()
}

function explain(error: NodeJS.ErrnoException): number {
  // Commander has already printed the usage error or the help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  const code = codeOfOutput(error)
  if (code !== undefined) return code
  const isForeseen = [CommandError, SettingError, StoreRefused].some((type) => error instanceof type)
  let line = isForeseen || error.code ? printable(error.message) : String(error.stack)
  if (error instanceof StoreUnavailable) line = `the database cannot be used now: ${printable(error.message)}`
  // Name the flag if that was given.
  const flag = '--database-url'
  if (words.some((word) => word.split('=', 1)[0] === flag)) line = line.replaceAll(/\bDATABASE_URL\b/g, flag)
  console.error(
    `plant-store: ${line}${error instanceof StoreRefused && error.isMissing ? `: ${whereDatabasesAre}` : ''}`,
  )
  return 1
}
