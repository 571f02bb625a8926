// Masks secrets in everything that is logged: a client may put its token anywhere, such as into a URL.

const own = /plant_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}(?:_[0-9A-Za-z]{6})?/g
/** Matches a JWT: `{"` is `eyJ` in base64url. The parts behind the header are optional. */
const jwt = /eyJ[\w-]{10,}(?:\.[\w-]*){0,4}/g
/** Matches the password of a URL (RFC 3986, section 3.2.1), as in an absolute request target. */
const password = /(:\/\/[^\s/?#"@:]*:)[^\s/?#"]*(?=@)/g
/** Shorter tokens would match within ordinary text. */
const minLength = 8
/** Shorter texts hold no secret: as long as `://:a@`. */
const shortest = 6

/**
 * Matches escapes of printable ASCII except space, `"`, `%` and `\`, which are decoded, and, as a group, any other
 * escape, whose digits become upper-case (RFC 3986, section 6.2.2.1).
 */
const escaped = /%(?:2[1346-9A-F]|[346][\dA-F]|5[\dABD-F]|7[\dA-E])|(%[\da-f]{2})/gi

/** Matches the percent sign of an escape that was escaped again, any number of times. */
const escapedAgain = /%(?:25)+(?=[\da-f]{2})/gi

/** Makes a function that masks, in JSON text, the service's own tokens, `accessTokens`, JWTs, and passwords of URLs. */
export function makeMask(accessTokens: string[]): (text: string) => string {
  const secrets = accessTokens.filter(({ length }) => length >= minLength).flatMap(formsOf)
  const mask = (text: string) =>
    secrets.reduce(
      (masked, secret) => masked.replaceAll(secret, '***'),
      maskJwts(text.replace(own, '***').replace(password, '$1***')),
    )
  /** Masks what is spelled by the escapes of `text`. It stays as it is when that holds no secret. */
  const maskSpelled = (text: string, once = text) => {
    const spelled = once.replace(escaped, spell)
    const masked = mask(spelled)
    return masked === spelled ? text : masked
  }
  return (text) => {
    if (text.length < shortest) return text
    const masked = mask(text)
    if (!masked.includes('%')) return masked
    const plain = maskSpelled(masked)
    return plain.includes('%25') ? maskSpelled(plain, plain.replace(escapedAgain, '%')) : plain
  }
}

/** Masks what looks like a JWT. A pattern that required the dots would scan to the end from each `eyJ`. */
export function maskJwts(text: string): string {
  return text.replace(jwt, (found) => (found.includes('.') ? '***' : found))
}

function spell(code: string, kept?: string): string {
  return kept?.toUpperCase() ?? decodeURIComponent(code)
}

/** The forms of a token in a line: plain, in JSON, and in URLs with all or only the necessary escapes. */
function formsOf(token: string): string[] {
  const inUrl = encodeURIComponent(token)
  return [...new Set([token, JSON.stringify(token).slice(1, -1), inUrl, inUrl.replace(escaped, spell)])]
}
