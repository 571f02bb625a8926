// The version: of the package, and of the build when it was made from a commit.
import { existsSync, readFileSync } from 'node:fs'

/** False in a package, whose code is compiled into dist/. */
const isSource = import.meta.url.endsWith('.ts')
/** The root of the package. */
export const root = new URL(isSource ? '../' : '../../', import.meta.url)
const packageFile = new URL('package.json', root)
/** The version of the package, its contract and its client. */
export const { version }: { version: string } = JSON.parse(readFileSync(packageFile, 'utf8'))

/** How messages call the command line: in a clone npx finds it, an installed one is in the path. */
export const command = isSource ? 'npx plant-store' : 'plant-store'

/** Written by package/build.ts; a checkout has none. */
const commit = new URL('commit', import.meta.url)

/** The version with the commit as build metadata (SemVer, section 10), such as 1.0.0+0123456789ab. */
export const build = existsSync(commit) ? `${version}+${readFileSync(commit, 'utf8')}` : version
