// What may be shown of a URL that can hold a password.

/** The password of a URL as asterisks, wherever it stands. A URL may name several hosts, so it is not parsed. */
export function maskUrl(url: string): string {
  return url
    .replace(/^(\w+:\/\/[^/?#]*?:)[^/?#]*(?=@)/, '$1***')
    .replaceAll(/([?&](?:password|sslpassword)=)[^&#]*/gi, '$1***')
}
