// The paths of `file:` URLs, and their directories.
import { existsSync, mkdirSync, statSync } from 'node:fs'
import { dirname, resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { attempt } from '../../attempt.ts'
import { giveToOwner, ignoring, syncDirectoryOf } from '../../file-system.ts'
import { StoreRefused } from '../errors.ts'

/** Returns the path of a URL, relative to the working directory. Throws StoreRefused if it is a directory. */
export function sqlitePath(url: string): string {
  const path = readPath(url)
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new StoreRefused(`the database must be a file, but ${resolve(path)} is a directory`)
  return path
}

/** Returns the path; '' for a URL with a host, such as `file://data/plants.db`. Throws for a malformed URL. */
function readPath(url: string): string {
  if (!url.startsWith('file://')) return decodeURIComponent(url.slice('file:'.length))
  return URL.canParse(url) && new URL(url).host === '' ? fileURLToPath(url) : ''
}

/** Returns the fault of a `file:` URL, as the end of a sentence. */
export function findPathFault(url: string): string | undefined {
  if (url.includes('?')) return 'must not have parameters; write ? in the path as %3F'
  if (/^file:\/\/.*#/.test(url)) return 'must not have a fragment; write # in the path as %23'
  const path = attempt(() => readPath(url))
  if (path === undefined) return 'is not a valid file: URL; write % in the path as %25'
  if (path !== '' && !/^(:|file:)/.test(path) && !path.includes('\0')) return undefined
  return 'does not name a file: write the path right after file:, as in file:data/plants.db'
}

/** Creates a directory and its parents, on stable storage. Throws StoreRefused. */
export function makeDirectory(directory: string) {
  // A killed process may have created it without this sync. The parent may be unreadable, or unable to sync (autofs).
  if (existsSync(directory)) return ignoring(['EACCES', 'EINVAL'], () => syncDirectoryOf(directory))
  makeDirectory(dirname(resolve(directory)))
  try {
    // `recursive` would loop infinitely in /proc.
    mkdirSync(directory, { mode: 0o700 })
  } catch (error) {
    // Another process may have created it in the meantime.
    if (!existsSync(directory))
      throw new StoreRefused(`cannot create the directory ${directory}: ${(error as Error).message}`)
  }
  giveToOwner(directory)
  syncDirectoryOf(directory)
}
