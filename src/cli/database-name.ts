// Names a database in the summaries of commands.
import { maskUrl } from '../config/mask.ts'
import { engineOf } from '../store/engines.ts'

/** The path of a file, or the URL without its password. */
export function nameDatabase(url: string): string {
  return engineOf(url).path?.(url) ?? maskUrl(url)
}
