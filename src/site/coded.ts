// Constant bytes in the content codings that clients accept (RFC 9110, section 12.5.3), each made once, on demand.
import { createHash } from 'node:crypto'
import { promisify } from 'node:util'
import { brotliCompress, gzip, constants as zlib, zstdCompress } from 'node:zlib'
import { type Coding, documentCodings, makeNegotiator } from '../http/codings.ts'

const negotiate = makeNegotiator(documentCodings)

/** Chooses the coding for an Accept-Encoding. */
export function chooseCoding(accepted: string | undefined): Coding {
  return negotiate(accepted)[0] as Coding
}

/** Compressors with the best ratio that does not keep the first client waiting. */
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

  /** Resolves to the bytes in a coding. */
  form(coding: Coding): Promise<Buffer> {
    const made = this.#forms.get(coding)
    if (made) return made
    const form = coding === 'identity' ? Promise.resolve(this.#bytes) : compress[coding](this.#bytes)
    this.#forms.set(coding, form)
    // Retry for the next client.
    form.catch(() => this.#forms.delete(coding))
    return form
  }
}
