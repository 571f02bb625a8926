// The tools are a package of their own, so that whoever builds or tests the project does not fetch them.
import { readFileSync } from 'node:fs'
import { folder, run } from './tools.ts'

/** Installs what the lockfile says, unless that is what is there. Scripts of packages do not run. */
export async function installTools(): Promise<void> {
  const locked = readPackages(`${folder}package-lock.json`)
  if (isInstalled(locked)) return
  console.log('installing the tools ...')
  // npm alone gets all of the environment: proxies and certificates of the way to the registry are set there.
  const command = ['npm', 'ci', '--ignore-scripts', '--no-audit', '--no-fund'] as const
  const { code, stderr } = await run([...command], { env: process.env })
  if (code !== 0) throw new Error(`npm ci failed in ${folder}: ${stderr}`)
}

type Packages = Record<string, { version?: string; optional?: boolean }>

/** npm leaves out optional packages of other platforms, so only what both name is compared, and what is not optional. */
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
