// Installs the package from a local file, with the Node and npm of the machine.
import { globSync, readFileSync } from 'node:fs'
import { delimiter, dirname, join } from 'node:path'
import { run } from '../support/processes.ts'

/** The PATH without the Node of npm, as on the machine of someone who installs the package. */
export const systemPath = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter)

/** Matches errors of npm when it cannot reach the registry. */
const unreachable =
  /npm error code (?:EAI_AGAIN|ENOTFOUND|ECONN\w+|ENET\w+|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT|SELF_\w+)$/m

/**
 * Runs `npm install` with these arguments, from the cache of npm where possible. Resolves to false if the cache lacks a
 * package and the registry cannot be reached.
 */
export async function install(directory: string, args: string[]): Promise<boolean> {
  const options = ['--prefer-offline', '--fetch-retries=0', '--fetch-timeout=60000', '--no-progress']
  const { code, stderr } = await run('npm', ['install', ...options, ...args], {
    cwd: directory,
    env: { PATH: systemPath },
  })
  if (code === 0) return true
  if (unreachable.test(stderr)) return false
  throw new Error(stderr)
}

/** NAME@VERSION of all packages below a directory. */
export function listInstalled(directory: string): string[] {
  const places = ['**/node_modules/*/package.json', '**/node_modules/@*/*/package.json']
  return globSync(places, { cwd: directory }).map((path) => {
    const { version } = JSON.parse(readFileSync(join(directory, path), 'utf8'))
    return `${dirname(path).split('node_modules/').at(-1)}@${version}`
  })
}
