// The versions of the package and of the build.
import { existsSync, readFileSync } from 'node:fs'

/** False in an installed package, which contains only the compiled code in dist/. */
const isSource = import.meta.url.endsWith('.ts')
/** The root of the package. */
export const root = new URL(isSource ? '../' : '../../', import.meta.url)
const packageFile = new URL('package.json', root)
/** The version of the package, the contract and the client. */
export const { version }: { version: string } = JSON.parse(readFileSync(packageFile, 'utf8'))

/** How messages name this command line: npx finds it in a clone; an installed command is on PATH. */
export const commandName = isSource ? 'npx plant-store' : 'plant-store'

/** Written by package/build.ts; missing in a checkout. */
const commit = new URL('commit', import.meta.url)

/** The version with the commit as build metadata (SemVer, section 10), such as 1.0.0+0123456789ab. */
export const build = existsSync(commit) ? `${version}+${readFileSync(commit, 'utf8')}` : version
