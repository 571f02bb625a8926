// Bytes that never change, in the content codings that clients accept (RFC 9110, section 12.5.3): each coding is made
// once, when the first client asks for it.
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, gzip, constants as zlib, zstdCompress } from 'node:zlib'

export type Coding = 'br' | 'zstd' | 'gzip' | 'identity'

/** In the order of preference. */
const codings: readonly Coding[] = ['br', 'zstd', 'gzip', 'identity']

/** The weight of what is acceptable although nobody named it: below every weight that can be written. */
const unnamed = 0.0001

/** One element of Accept-Encoding: a coding and its weight. Each part begins where the one before cannot go on. */
const element =
  /^[\t ]*([!#$%&'*+.^_`|~0-9a-z-]+)[\t ]*(?:;[\t ]*q=(0(?:\.\d{0,3})?|1(?:\.0{0,3})?)[\t ]*)?$/i

/**
 * The coding for a client that sent this Accept-Encoding. Malformed elements count for nothing. A client that refuses
 * the plain bytes and names no other coding gets one all the same; one that refuses every coding gets the plain bytes.
 */
export function chooseCoding(accepted: string | undefined): Coding {
  if (accepted === undefined) return 'identity'
  const weights = readWeights(accepted)
  const byDefault = (coding: Coding) => (coding === 'identity' || weights.get('identity') === 0 ? unnamed : 0)
  const weigh = (coding: Coding) => weights.get(coding) ?? weights.get('*') ?? byDefault(coding)
  const [best] = codings.toSorted((one, other) => weigh(other) - weigh(one)) as [Coding]
  return weigh(best) > 0 ? best : 'identity'
}

function readWeights(accepted: string): Map<string, number> {
  const weights = new Map<string, number>()
  for (const text of accepted.split(',')) {
    const [, name, weight = '1'] = element.exec(text) ?? []
    // RFC 9110, section 8.4.1.3: the older name of gzip.
    if (name !== undefined) weights.set(name.toLowerCase().replace(/^x-gzip$/, 'gzip'), Number(weight))
  }
  return weights
}

/** The best ratio that does not keep the first client waiting. */
const compress: Record<Exclude<Coding, 'identity'>, (bytes: Buffer) => Promise<Buffer>> = {
  br: (bytes) =>
    promisify(brotliCompress)(bytes, {
      params: { [zlib.BROTLI_PARAM_QUALITY]: 9, [zlib.BROTLI_PARAM_SIZE_HINT]: bytes.length },
    }),
  zstd: (bytes) => promisify(zstdCompress)(bytes, { params: { [zlib.ZSTD_c_compressionLevel]: 12 } }),
  gzip: (bytes) => promisify(gzip)(bytes, { level: 9 }),
}

export class Coded {
  readonly #forms = new Map<Coding, Promise<Buffer>>()
  readonly #bytes: Buffer
  readonly #hash: string

  constructor(content: string | Buffer) {
    this.#bytes = Buffer.from(content)
    this.#hash = createHash('sha256').update(this.#bytes).digest('base64url').slice(0, 16)
  }

  /** A strong entity tag, which differs between codings (RFC 9110, section 8.8.3.3). */
  etag(coding: Coding): string {
    return coding === 'identity' ? `"${this.#hash}"` : `"${this.#hash}-${coding}"`
  }

  /** The bytes in a coding. */
  form(coding: Coding): Promise<Buffer> {
    const made = this.#forms.get(coding)
    if (made) return made
    const form = coding === 'identity' ? Promise.resolve(this.#bytes) : compress[coding](this.#bytes)
    this.#forms.set(coding, form)
    return form
  }
}
