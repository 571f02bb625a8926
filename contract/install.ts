// The tools are a separate package, so that building or testing the project does not install them.
import { readFileSync } from 'node:fs'
import { folder, run } from './tools.ts'

/** Installs the versions in the lockfile, unless they are already installed. Install scripts do not run. */
export async function installTools(): Promise<void> {
  const locked = readPackages(`${folder}package-lock.json`)
  if (isInstalled(locked)) return
  console.log('installing the tools ...')
  // Only npm gets the whole environment, which has the proxies and certificates for the registry.
  const command = ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'] as const
  const { code, stderr } = await run([...command], { env: process.env })
  if (code !== 0) throw new Error(`npm ci failed in ${folder}: ${stderr}`)
}

type Packages = Record<string, { version?: string; optional?: boolean }>

/** npm omits optional packages of other platforms, so an optional package is compared only if both list it. */
function isInstalled(locked: Packages): boolean {
  try {
    const installed = readPackages(`${folder}node_modules/.package-lock.json`)
    return Object.entries(locked).every(
      ([path, { version, optional }]) =>
        path === '' || installed[path]?.version === version || (optional && !installed[path]),
    )
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return false
    throw error
  }
}

const readPackages = (path: string): Packages => JSON.parse(readFileSync(path, 'utf8')).packages
