// Builds lines from pieces of bytes. The log has a line per request, which as text would be copied, scanned and encoded
// several times.

/** Powers of ten, up to the first beyond the safe integers. */
const powers = Array.from({ length: 17 }, (_, exponent) => 10 ** exponent)

export class LineBytes {
  readonly #bytes: Buffer
  #length = 0

  constructor(maxBytes: number) {
    this.#bytes = Buffer.allocUnsafeSlow(maxBytes)
  }

  get length(): number {
    return this.#length
  }

  put(piece: Uint8Array): void {
    this.#bytes.set(piece, this.#length)
    this.#length += piece.length
  }

  /** Appends short ASCII text: a call into the runtime would cost more than the loop. */
  putAscii(text: string): void {
    const bytes = this.#bytes
    let at = this.#length
    for (let i = 0; i < text.length; i++) bytes[at++] = text.charCodeAt(i)
    this.#length = at
  }

  /** Appends a natural number in decimal, with at least `digits` digits. */
  putNumber(value: number, digits = 1): void {
    let count = digits
    while (value >= (powers[count] as number)) count++
    this.#length += count
    let left = value
    for (let at = this.#length - 1; at >= this.#length - count; at--) {
      const rest = Math.floor(left / 10)
      this.#bytes[at] = 0x30 + left - rest * 10
      left = rest
    }
  }

  /** Returns the bytes so far, valid until the next append, and resets the buffer. */
  take(): Uint8Array {
    const taken = this.#bytes.subarray(0, this.#length)
    this.#length = 0
    return taken
  }
}
