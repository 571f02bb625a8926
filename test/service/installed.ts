// The package as people install it: from the local file, by the machine's own Node and npm.
import { readdirSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { run } from '../support/processes.ts'

/** Without the Node that npm brought along: what people have who install the package. */
export const systemPath = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter)

/** What npm says when it needs the registry and cannot reach it. */
const unreachable =
  /npm error code (?:EAI_AGAIN|ENOTFOUND|ECONN\w+|ENET\w+|EHOSTUNREACH|ETIMEDOUT|ERR_SOCKET_TIMEOUT|SELF_\w+)$/m

/**
 * `npm install` with these arguments; what is in npm's cache, as after `npm ci`, is not asked for again.
 * False: the cache lacks something, and the registry cannot be reached.
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
  const folder = join(directory, 'node_modules')
  return listNames(folder).flatMap((name) => {
    const { version } = JSON.parse(readFileSync(join(folder, name, 'package.json'), 'utf8'))
    return [`${name}@${version}`, ...listInstalled(join(folder, name))]
  })
}

function listNames(folder: string): string[] {
  return readNames(folder).flatMap((name) =>
    name.startsWith('@') ? readNames(join(folder, name)).map((one) => `${name}/${one}`) : name,
  )
}

function readNames(folder: string): string[] {
  try {
    return readdirSync(folder).filter((name) => !name.startsWith('.'))
  } catch {
    return []
  }
}
