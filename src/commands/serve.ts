// serve: runs the service until a signal stops it.
import type { Command } from 'commander'
import { addSettingOptions } from '../cli/options.ts'
import { runService } from '../server.ts'
import { type Flags, loadSettings } from '../settings.ts'
import { commandName } from '../version.ts'

const help = `
A flag overrides the environment, and the environment overrides .env in the working directory; ${commandName} config
shows the effective settings. Operator messages go to stdout, the log to stderr. On SIGTERM, SIGINT or SIGHUP the service
finishes requests in flight, and exits with 0.`

export function define(command: Command): void {
  const run = (flags: Flags) => runService(loadSettings(flags).settings)
  addSettingOptions(command).addHelpText('after', help).action(run)
}
