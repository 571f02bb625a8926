// A message of protobuf, written from front to back (protobuf.dev, "Encoding"), as far as spans need it.

const maxTextBytes = 1024

export class Message {
  #bytes = Buffer.allocUnsafeSlow(2 ** 16)
  #length = 0

  get bytes(): Uint8Array {
    return this.#bytes.subarray(0, this.#length)
  }

  reserve(size: number): void {
    if (this.#length + size <= this.#bytes.length) return
    const grown = Buffer.allocUnsafeSlow(2 * this.#bytes.length)
    grown.set(this.bytes)
    this.#bytes = grown
  }

  put(piece: Uint8Array): void {
    this.#bytes.set(piece, this.#length)
    this.#length += piece.length
  }

  /** Begins a field with a length, for which `room` bytes are left free, and returns where its content does. */
  begin(field: number, room = 2): number {
    this.#bytes[this.#length] = (field << 3) | 2
    this.#length += 1 + room
    return this.#length
  }

  end(start: number, room = 2): void {
    this.#putVarint(this.#length - start, start - room, room)
  }

  /** Text, as much of it as 1 KiB holds; or the bytes that it is the digits of. */
  putText(field: number, text: string, encoding: 'utf8' | 'hex' = 'utf8'): void {
    const start = this.begin(field)
    this.#length += this.#bytes.write(text, start, maxTextBytes, encoding)
    this.end(start)
  }

  /** `value`: a natural number below 2^14. */
  putNumber(field: number, value: number): void {
    this.#bytes[this.#length] = field << 3
    this.#putVarint(value, this.#length + 1, 2)
    this.#length += 3
  }

  /** A fixed64: milliseconds as nanoseconds. */
  putTime(field: number, ms: number): void {
    this.#bytes[this.#length] = (field << 3) | 1
    const ns = ms * 1e6
    const high = Math.floor(ns / 2 ** 32)
    this.#bytes.writeUInt32LE(ns - high * 2 ** 32, this.#length + 1)
    this.#length = this.#bytes.writeUInt32LE(high, this.#length + 5)
  }

  /** A KeyValue of OTLP (common/v1), with a text or a natural number. */
  putAttribute(field: number, key: string, value: string | number): void {
    const start = this.begin(field)
    this.putText(1, key)
    const given = this.begin(2)
    if (typeof value === 'string') this.putText(1, value)
    else this.putNumber(3, value)
    this.end(given)
    this.end(start)
  }

  /** It may have zeros on top: so no length has to be known before its content. */
  #putVarint(value: number, at: number, room: number): void {
    let left = value
    for (let i = 0; i < room; i++, left >>= 7) this.#bytes[at + i] = (left & 0x7f) | (i < room - 1 ? 0x80 : 0)
  }
}
