// Describes a database to its operator.
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { engineOf } from '../store/engines.ts'
import { maskUrl } from './mask.ts'

/** The file of a database about to be opened, and whether it is opened or created; or the URL, masked. */
export function describeDatabase(url: string): string {
  const file = engineOf(url).path?.(url)
  if (file === undefined) return maskUrl(url)
  const bytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  return `${resolve(file)} (${bytes > 0 ? 'opened' : 'created'})`
}
