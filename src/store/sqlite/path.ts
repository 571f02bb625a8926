// The file that a `file:` URL names.
import { fileURLToPath } from 'node:url'
import { StoreRefused } from '../store.ts'

/** Relative to the working directory. Throws StoreRefused when the URL names no file. */
export function sqlitePath(url: string): string {
  const path = url.startsWith('file://') ? fileURLToPath(url) : decodeURIComponent(url.slice('file:'.length))
  if (path === '' || path.startsWith(':')) throw new StoreRefused(`DATABASE_URL names no file: ${url}`)
  return path
}
