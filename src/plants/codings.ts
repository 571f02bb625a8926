// Content codings: negotiation (RFC 9110, section 12.5.3) and compression.
import type { Transform } from 'node:stream'
import { promisify } from 'node:util'
import zlib, { constants } from 'node:zlib'
import { LRUCache } from 'lru-cache'

export type Compression = 'zstd' | 'br' | 'gzip'
export type Coding = Compression | 'identity'

/** Preference at equal weights. zstd is the fastest for its compression ratio. */
const preferred: readonly Coding[] = ['zstd', 'br', 'gzip', 'identity']
/** Preference among the codings matched by `*`: the most widely supported first. */
const unnamed = preferred.toReversed()

/** Matches an element of Accept-Encoding with its weight, up to the comma. */
const elements =
  /(?:^|,)[\t ]*(zstd|br|gzip|x-gzip|identity|\*)[\t ]*(?:;[\t ]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[\t ]*)?(?=,|$)/gi

/**
 * Returns the codings allowed by an Accept-Encoding, best first: by weight; at equal weights, named codings before
 * those matched by `*`. Identity is last unless it is named or matched by `*`. A header that refuses every coding
 * counts as absent.
 */
export const negotiate = (accepted: string | undefined): Coding[] =>
  accepted === undefined ? ['identity'] : ranked.memo(accepted)

/** Clients send few distinct headers, of at most 16 KiB each. */
const ranked = new LRUCache<string, Coding[]>({ max: 200, memoMethod: rank })

function rank(accepted: string): Coding[] {
  const weights = new Map<string, number>()
  // x-gzip is the older name of gzip (RFC 9110, section 8.4.1.3).
  for (const [, name = '', weight = '1'] of accepted.matchAll(elements))
    weights.set(name.toLowerCase().replace(/^x-/, ''), Number(weight))
  const any = weights.get('*')
  // Identity is acceptable unless it is refused, but ranks below all named codings.
  const weigh = (coding: Coding) =>
    weights.get(coding) ?? any ?? (coding === 'identity' ? Number.MIN_VALUE : 0)
  const named = preferred.filter((coding) => weights.has(coding))
  const all = [...named, ...unnamed.filter((coding) => !weights.has(coding))]
    .filter((coding) => weigh(coding) > 0)
    .sort((one, other) => weigh(other) - weigh(one))
  return all.length > 0 ? all : ['identity']
}

// Measured: docs/decisions/0014-lists-in-content-codings.md.
const zstd = (level: number, window: number) => ({
  params: { [constants.ZSTD_c_compressionLevel]: level, [constants.ZSTD_c_windowLog]: window },
})
const brotli = { params: { [constants.BROTLI_PARAM_QUALITY]: 5, [constants.BROTLI_PARAM_LGWIN]: 18 } }

/** Functions that compress a page, in the thread pool. */
export const compressors: Record<Compression, (bytes: Buffer) => Promise<Buffer>> = {
  zstd: (bytes) => promisify(zlib.zstdCompress)(bytes, zstd(9, 18)),
  br: (bytes) => promisify(zlib.brotliCompress)(bytes, brotli),
  gzip: (bytes) => promisify(zlib.gzip)(bytes, { level: 6 }),
}

/** Creates a stream that compresses a long list. */
export const makeCompressor: Record<Compression, () => Transform> = {
  zstd: () => zlib.createZstdCompress(zstd(1, 19)),
  br: () => zlib.createBrotliCompress(brotli),
  gzip: () => zlib.createGzip({ level: 2 }),
}
