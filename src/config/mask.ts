// Masks passwords in URLs, and tokens and such URLs in texts.
import { maskJwts } from '../logging/secrets.ts'

/** The password of a URL as asterisks, wherever it stands. A URL may name several hosts, so it is not parsed. */
export function maskUrl(url: string): string {
  return url
    .replace(/^(\w+:\/\/[^/?#]*?:)[^/?#]*(?=@)/, '$1***')
    .replaceAll(/([?&](?:password|sslpassword)=)[^&#]*/gi, '$1***')
}

/** Tokens without their secrets. */
export function hideTokens(text: string): string {
  return maskJwts(text.replaceAll(/(plant_[0-9A-Za-z]{8}_)[0-9A-Za-z_]+/g, '$1***'))
}

/** A message that repeats what was typed, without the secrets in it. */
export function hideSecrets(text: string): string {
  return hideTokens(text)
    .replaceAll(/(\w+:\/\/[^\s/?#]*?:)[^\s/?#]*(?=@)/g, '$1***')
    .replaceAll(/(unknown option '--[^=]+=)[^']*/g, '$1***')
}
