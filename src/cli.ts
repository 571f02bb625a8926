// Runs one command. Exit codes: 0 success, 1 failure, 2 usage error. An interrupted command ends by the same signal.
import { constants } from 'node:os'
import { CommanderError } from 'commander'
import { CommandError, signals, watchOutput } from './cli/console.ts'
import { buildProgram } from './cli/program.ts'
import { printable } from './log-text.ts'
import { passwordInUrl } from './mask.ts'
import { SettingError } from './setting-values.ts'
import { StoreRefused, StoreUnavailable } from './store/errors.ts'

endWithLauncher()
// Process 1 of a container receives only signals that have a listener.
if (process.pid === 1)
  for (const name of signals)
    process.on(name, () => process.listenerCount(name) === 1 && process.exit(128 + constants.signals[name]))
const codeOfOutput = watchOutput()
try {
  await (await buildProgram(process.argv.slice(2))).parseAsync()
} catch (error) {
  // A command may already have set exit code 1 when its stdout is closed.
  process.exitCode = Math.max(reportError(error as NodeJS.ErrnoException), Number(process.exitCode ?? 0))
}

/** Exits when the launcher in bin/ exits, which closes the IPC channel to a process that it spawned. */
function endWithLauncher(): void {
  const end = () => process.kill(process.pid, 'SIGTERM')
  process.once('disconnect', end)
  process.channel?.unref()
  if (process.send && !process.connected) end()
}

function reportError(error: NodeJS.ErrnoException): number {
  // Commander has already printed the usage error or the help.
  if (error instanceof CommanderError) return error.exitCode === 0 ? 0 : 2
  const code = codeOfOutput(error)
  if (code !== undefined) return code
  const isExpected = [CommandError, SettingError, StoreRefused].some((type) => error instanceof type)
  let line = isExpected || error.code ? printable(error.message) : String(error.stack)
  if (error instanceof StoreUnavailable) line = `the database is unavailable: ${printable(error.message)}`
  console.error(`plant-store: ${line.replaceAll(passwordInUrl, '$1***')}`)
  return 1
}
