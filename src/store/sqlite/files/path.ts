// The file that a `file:` URL names.
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { identify } from '../../../runtime/same-file.ts'
import { StoreMissing, StoreRefused } from '../../store.ts'

/** Relative to the working directory. Throws StoreRefused when the URL names a folder. */
export function sqlitePath(url: string): string {
  const path = readPath(url) as string
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new StoreRefused(`DATABASE_URL names a folder, not a file: ${resolve(path)}`)
  return path
}

/** Undefined for a URL of another host, as `file://data/plants.db` is. */
function readPath(url: string): string | undefined {
  if (!url.startsWith('file://')) return decodeURIComponent(url.slice('file:'.length))
  return URL.canParse(url) && new URL(url).host === '' ? fileURLToPath(url) : undefined
}

/** Why a `file:` URL cannot be used, as the end of a sentence. */
export function findPathFault(url: string): string | undefined {
  if (!isDecodable(url)) return 'must be file: and a path, with each % in it written as %25'
  if (url.includes('?')) return 'has a parameter, but file: takes none; a ? in a path is written as %3F'
  const path = readPath(url)
  if (path !== undefined && !path.startsWith(':') && !path.includes('\0')) return undefined
  return `names no file: ${url}; a path follows file: at once, as in file:data/plants.db`
}

function isDecodable(text: string): boolean {
  try {
    return decodeURIComponent(text) !== ''
  } catch {
    return false
  }
}

/** As `sqlitePath`, for whoever makes no database. Throws StoreMissing when none is there. */
export function existingPath(url: string): string {
  const path = sqlitePath(url)
  if (identify(path) === undefined) throw new StoreMissing(resolve(path))
  return path
}
