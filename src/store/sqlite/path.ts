// The file that a `file:` URL names.
import { statSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { StoreRefused } from '../errors.ts'

/** Reads the path, relative to the working directory. Throws StoreRefused when it is a folder. */
export function sqlitePath(url: string): string {
  const path = readPath(url) as string
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory())
    throw new StoreRefused(`the database must be a file, but ${resolve(path)} is a folder`)
  return path
}

/** Reads the path; undefined for a URL with a host, like `file://data/plants.db`. */
function readPath(url: string): string | undefined {
  if (!url.startsWith('file://')) return decodeURIComponent(url.slice('file:'.length))
  return URL.canParse(url) && new URL(url).host === '' ? fileURLToPath(url) : undefined
}

/** The fault of a `file:` URL, as the end of a sentence. */
export function findPathFault(url: string): string | undefined {
  if (url.includes('?')) return 'has a parameter, but file: takes none; a ? in a path is written as %3F'
  if (/^file:\/\/.*#/.test(url)) return 'has a fragment, which names no part of a path; a # is written as %23'
  try {
    const path = readPath(url)
    if (path !== undefined && !path.startsWith(':') && !path.includes('\0')) return undefined
  } catch {
    return 'must be file: and a path, with each % in it written as %25'
  }
  return `names no file: ${url}; a path follows file: at once, as in file:data/plants.db`
}
