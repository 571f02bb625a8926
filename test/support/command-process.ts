// The process behind `runCommand`: src/cli.ts runs anew for each command, but its imports are loaded once.
import type { CommandLine } from './commands.ts'

const cli = new URL('../../src/cli.ts', import.meta.url)
const own = { env: { ...process.env }, cwd: process.cwd() }
let count = 0

function setEnvironment(env: NodeJS.ProcessEnv): void {
  for (const name of Object.keys(process.env)) delete process.env[name]
  Object.assign(process.env, env)
}

/** Removes the listeners that a command leaves behind. */
function forgetListeners(): void {
  for (const name of ['SIGINT', 'SIGTERM', 'disconnect']) process.removeAllListeners(name)
  for (const stream of [process.stdout, process.stderr]) stream.removeAllListeners('error')
  process.once('disconnect', () => process.exit())
  process.channel?.ref()
}

async function run({ args, env, cwd, mark }: CommandLine): Promise<void> {
  process.chdir(cwd)
  setEnvironment({ ...own.env, ...env })
  process.argv.splice(2, Infinity, ...args)
  process.exitCode = undefined
  await import(`${cli}?${count++}`)
  for (const stream of [process.stdout, process.stderr]) stream.write(mark)
  process.send?.(process.exitCode ?? 0)
  process.exitCode = undefined
  process.chdir(own.cwd)
  forgetListeners()
}

forgetListeners()
process.on('message', run)
