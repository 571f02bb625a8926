// How a database is called to its operator.
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { maskUrl } from '../config/mask.ts'
import { sqlitePath } from './sqlite/path.ts'

/** Of the database that is about to be opened: which file, and whether it is opened or created; or the URL, masked. */
export function describeDatabase(url: string): string {
  if (!url.startsWith('file:')) return maskUrl(url)
  const path = resolve(sqlitePath(url))
  const bytes = statSync(path, { throwIfNoEntry: false })?.size ?? 0
  return `${path} (${bytes > 0 ? 'opened' : 'created'})`
}
