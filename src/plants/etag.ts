// Entity tags of lists (RFC 9110, section 8.8.3).
import { createHash } from 'node:crypto'
import type { Coding } from '../http/codings.ts'
import { codecNames } from './codec.ts'

/**
 * Makes strong tags: of a page of this store in a coding, by the page's name. Each coding has another (RFC 9110, section
 * 8.8.3.3).
 */
export function makeEtags(storeId: string): (page: { name: string }, coding: Coding) => string {
  const store = createHash('sha256').update(storeId).digest('base64url').slice(0, 8)
  return ({ name }, coding) =>
    coding === 'identity' ? `"${store}.${name}"` : `"${store}.${name}.${codecNames[coding]}"`
}
