// Masks secrets (tokens, JWTs and passwords) in the log, in errors and in the output of commands.

const ownToken = /plant_[0-9A-Za-z]{8}_[0-9A-Za-z_]+/g
/**
 * Matches a possible JWT: the base64url encoding of `{` starts with e, then one of w to z, 0 to 9, - and _. A header has
 * more than 16 characters, one of them a capital letter, and a payload more than 8. It starts only at the beginning of a
 * word, so the time is linear.
 */
const jwtLike = /(?<![\w-])e[w-z0-9_-](?=[\w-]*[A-Z])[\w-]{15,}\.[\w-]{9,}(?:\.[\w-]*){0,3}/g
export const passwordInUrl = /(:\/\/[^\s/?#"@:]*:)[^\s/?#"]*(?=@)/g
const passwordInQuery = /([?&](?:ssl)?password=)[^&\n]*/gi

/**
 * Returns a function that masks secrets in a string, including percent-encoded ones. Very short tokens are not masked,
 * because they would match within ordinary words.
 */
export function makeMask(accessTokens: readonly string[]): (text: string) => string {
  const secrets = accessTokens.filter(({ length }) => length >= 8).flatMap(encode)
  const mask = (text: string) => {
    const masked = text.replace(ownToken, '***').replace(jwtLike, '***').replace(passwordInUrl, '$1***')
    return secrets.reduce((rest, secret) => rest.replaceAll(secret, '***'), masked)
  }
  return (text) => {
    const masked = mask(text)
    if (!text.includes('%')) return masked
    const plain = decodePrintable(text)
    const maskedPlain = mask(plain)
    return maskedPlain === plain ? masked : maskedPlain
  }
}

/** Lists the encodings of a token: none, JSON, and percent-encoding in full or in part. */
function encode(token: string): string[] {
  const encoded = encodeURIComponent(token)
  return [token, JSON.stringify(token).slice(1, -1), encoded, decodePrintable(encoded)]
}

/** Decodes printable characters that are percent-encoded once or repeatedly, except those that JSON escapes. */
function decodePrintable(text: string): string {
  return text.replace(/%(?:25)*([0-9a-f]{2})/gi, (_, hex) => {
    const character = String.fromCharCode(Number.parseInt(hex, 16))
    return /[ -~]/.test(character) && !/["\\]/.test(character) ? character : `%${hex.toUpperCase()}`
  })
}

/** Masks the passwords in a URL. A URL with several hosts cannot be parsed. */
export const maskUrl = (url: string) =>
  url.replace(/^(\w+:\/\/[^/?#]*?:)[^/?#]*(?=@)/, '$1***').replaceAll(passwordInQuery, '$1***')
