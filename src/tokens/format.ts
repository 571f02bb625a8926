// The format of tokens: plant_<id>_<secret>_<checksum>. With the checksum, invalid tokens are refused without a
// look-up, and secret scanners can recognize leaked tokens.
import { hash, randomInt } from 'node:crypto'
import { crc32 } from 'node:zlib'

const base62 = '0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz'
const idLength = 8
/** 32 characters of base62 are 190.5 bits. */
const secretLength = 32
const checksumLength = 6
/** Matches a token with these lengths: its text before the checksum, its id, and its checksum. */
const form = /^(plant_([0-9A-Za-z]{8})_[0-9A-Za-z]{32})_([0-9A-Za-z]{6})$/

/** Generates a token; `id` is public, the rest is secret. */
export function makeToken(id = randomBase62(idLength)): { id: string; token: string } {
  const body = `plant_${id}_${randomBase62(secretLength)}`
  return { id, token: `${body}_${checksum(body)}` }
}

/** Returns the id in a token; undefined if the string is not a token or its checksum is wrong. */
export function readTokenId(text: string): string | undefined {
  const [, body, id, sum] = form.exec(text) ?? []
  return body !== undefined && checksum(body) === sum ? id : undefined
}

/**
 * True for a string that starts like a JWT: with `{"` in base64url. White space around the `{` would be valid JSON, but
 * no issuer writes it, and the mask of the log would not match it.
 */
export const isJwt = (token: string) => /^ey[I-L]/.test(token)

/** Returns the SHA-256 of a token in hex, as it is stored. */
export const hashToken = (token: string) => hash('sha256', token)

/** Returns the CRC-32 of a string in base62. */
function checksum(body: string): string {
  const sum = crc32(body)
  const digits = Array.from({ length: checksumLength }, (_, n) => base62[Math.floor(sum / 62 ** n) % 62])
  return digits.reverse().join('')
}

const randomBase62 = (length: number) => Array.from({ length }, () => base62[randomInt(62)]).join('')
