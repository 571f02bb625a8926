// The last look at whatever is logged: a client may put its token where none belongs, like a URL.

const own = /plant_[0-9A-Za-z]{8}_[0-9A-Za-z]{32}(?:_[0-9A-Za-z]{6})?/g
/** JSON begins with `{"`, in base64url `eyJ`: a header, and whatever stands behind it. */
export const jwt = /eyJ[\w-]{10,}(?:\.[\w-]*){1,4}/g
const jwtLength = 14
/** Shorter tokens would be found in any text. */
const minLength = 8

/** Makes a function that masks tokens of the service's own form, and these tokens, in JSON text. */
export function makeMask(accessTokens: string[]): (text: string) => string {
  const secrets = accessTokens.filter(({ length }) => length >= minLength).flatMap(formsOf)
  const shortest = Math.min(jwtLength, ...secrets.map(({ length }) => length))
  return (text) =>
    text.length < shortest
      ? text
      : secrets.reduce(
          (masked, secret) => masked.replaceAll(secret, '***'),
          text.replace(own, '***').replace(jwt, '***'),
        )
}

/** As they are, as JSON has them, and as URLs do. */
function formsOf(token: string): string[] {
  return [...new Set([token, JSON.stringify(token).slice(1, -1), encodeURIComponent(token)])]
}
