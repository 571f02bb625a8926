// The version: of the package, and of the build when it was made from a commit.
import { existsSync, readFileSync } from 'node:fs'
import { findPackageJSON } from 'node:module'

const packageFile = findPackageJSON(import.meta.url) as string
/** The version of the package, its contract and its client. */
export const { version }: { version: string } = JSON.parse(readFileSync(packageFile, 'utf8'))

/** Written by package/build.ts; a checkout has none. */
const commit = new URL('../commit', import.meta.url)

/* c8 ignore next 2: what runs here is no build (test/service/package.test.ts runs one) */
/** How the command line is called: in a clone npx finds it, an installed one is in the path. */
export const command = import.meta.url.endsWith('.ts') ? 'npx plant-store' : 'plant-store'

/* c8 ignore next 2: only a build has a commit */
/** The version with the commit as build metadata (SemVer, section 10), such as 2.0.0+0123456789ab. */
export const build = existsSync(commit) ? `${version}+${readFileSync(commit, 'utf8')}` : version
