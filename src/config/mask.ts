// Masks passwords in URLs, and tokens and such URLs in texts.
import { maskJwts } from '../logging/secrets.ts'

/** Masks the passwords in a URL. It may name several hosts, so it is not parsed. */
export function maskUrl(url: string): string {
  return url
    .replace(/^(\w+:\/\/[^/?#]*?:)[^/?#]*(?=@)/, '$1***')
    .replaceAll(/([?&](?:password|sslpassword)=)[^&#]*/gi, '$1***')
}

/** Masks the secrets of tokens. */
export function hideTokens(text: string): string {
  return maskJwts(text.replaceAll(/(plant_[0-9A-Za-z]{8}_)[0-9A-Za-z_]+/g, '$1***'))
}

/** Masks the secrets in a message that repeats what was typed. */
export function hideSecrets(text: string): string {
  return hideTokens(text)
    .replaceAll(/(\w+:\/\/[^\s/?#]*?:)[^\s/?#]*(?=@)/g, '$1***')
    .replaceAll(/(unknown option '--[^=]+=)[^']*/g, '$1***')
}
