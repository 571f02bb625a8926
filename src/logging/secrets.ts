// The last look at whatever is logged: a client may put its token where none belongs, like a URL.

const own = /plant_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}(?:_[0-9A-Za-z]{6})?/g
/** JSON begins with `{"`, in base64url `eyJ`: a header, and whatever stands behind it, if only to be passed over. */
const jwt = /eyJ[\w-]{10,}(?:\.[\w-]*){0,4}/g
const jwtLength = 14
/** The password of a URL (RFC 3986, section 3.2.1): an absolute target is logged as it came. */
const password = /(:\/\/[^\s/?#"@:]*:)[^\s/?#"]*(?=@)/g
/** Shorter tokens would be found in any text. */
const minLength = 8

/** Each URL escapes as much as it likes (RFC 3986, section 6.2.2). What JSON, a URL or a line cannot have stays escaped. */
const escaped = /%(?:2[1346-9A-F]|[346][\dA-F]|5[\dABD-F]|7[\dA-E])|(%[\da-f]{2})/gi

/** Makes a function that masks tokens of the service's own form, these tokens, and passwords of URLs, in JSON text. */
export function makeMask(accessTokens: string[]): (text: string) => string {
  const secrets = accessTokens.filter(({ length }) => length >= minLength).flatMap(formsOf)
  const shortest = Math.min(jwtLength, ...secrets.map(({ length }) => length))
  const mask = (text: string) =>
    secrets.reduce(
      (masked, secret) => masked.replaceAll(secret, '***'),
      maskJwts(text.replace(own, '***').replace(password, '$1***')),
    )
  return (text) => {
    if (text.length < shortest) return text
    const plain = mask(text)
    const spelled = plain.replace(escaped, spell)
    const masked = spelled === plain ? plain : mask(spelled)
    // A URL that hides nothing stays as it was sent.
    return masked === spelled ? plain : masked
  }
}

/** Takes what looks like a JWT out of a text. A pattern that asked for the dot would search from each `eyJ` to the end. */
export function maskJwts(text: string): string {
  return text.replace(jwt, (found) => (found.includes('.') ? '***' : found))
}

function spell(code: string, kept?: string): string {
  return kept?.toUpperCase() ?? decodeURIComponent(code)
}

/** As they are, as JSON has them, and as URLs do, escaped throughout and as little as can be. */
function formsOf(token: string): string[] {
  const inUrl = encodeURIComponent(token)
  return [...new Set([token, JSON.stringify(token).slice(1, -1), inUrl, inUrl.replace(escaped, spell)])]
}
