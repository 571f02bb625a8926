// The package as people install it: from the local file, by the machine's own Node and npm.
import { readdirSync, readFileSync } from 'node:fs'
import { delimiter, join } from 'node:path'
import { run } from './programs.ts'

/** Without the Node that npm brought along: what people have who install the package. */
export const systemPath = (process.env.PATH ?? '')
  .split(delimiter)
  .filter((folder) => !folder.includes('node_modules'))
  .join(delimiter)

/** `npm install` with these arguments; what is in npm's cache is not asked for again. */
export async function install(directory: string, args: string[]): Promise<void> {
  const { code, stderr } = await run('npm', ['install', '--prefer-offline', '--no-progress', ...args], {
    cwd: directory,
    env: { PATH: systemPath },
  })
  if (code !== 0) throw new Error(stderr)
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
