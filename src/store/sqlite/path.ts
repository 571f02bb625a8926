// The file that a `file:` URL names.
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { StoreMissing, StoreRefused } from '../store.ts'
import { identify } from './files.ts'

/** Relative to the working directory. Throws StoreRefused when the URL names no file. */
export function sqlitePath(url: string): string {
  const path = url.startsWith('file://') ? fileURLToPath(url) : decodeURIComponent(url.slice('file:'.length))
  if (path === '' || path.startsWith(':')) throw new StoreRefused(`DATABASE_URL names no file: ${url}`)
  return path
}

/** As `sqlitePath`, for whoever makes no database. Throws StoreMissing when none is there. */
export function existingPath(url: string): string {
  const path = sqlitePath(url)
  if (identify(path) === undefined) throw new StoreMissing(resolve(path))
  return path
}
