// Formats responses for the guide: without headers that do not concern the service, and with fixed instead of random
// values.

const shownHeaders =
  /^(allow|cache-control|content-encoding|content-type|etag|link|ratelimit|ratelimit-policy|retry-after|vary|www-authenticate)$/
const maxLine = 80

/** An HTTP message as the guide shows it. */
export function show(message: string): string {
  const [head = '', ...rest] = message.split('\r\n\r\n')
  const [status, ...lines] = head.split('\r\n')
  const headers = lines.filter((line) => shownHeaders.test(line.split(':', 1)[0]?.toLowerCase() ?? ''))
  const body = showBody(rest.join('\r\n\r\n'))
  return `${[status, ...headers.map(anonymize)].join('\n')}\n${body && `\n${body}\n`}`
}

/** Marks are random. */
function anonymize(line: string): string {
  return line
    .replace(/(etag: W\/"[\d.]+-\d+)\.[\w-]+/, '$1.j8_mOE1Q-9Q')
    .replace(/(after=\w+)-[\w-]+/, '$1-j8_mOE1Q-9Q')
}

function showBody(body: string): string {
  if (body.length <= maxLine) return body
  const value: unknown = JSON.parse(body)
  if (!Array.isArray(value)) return JSON.stringify(value, null, 2)
  return `[${value.map((item) => JSON.stringify(item)).join(',\n ')}]`
}
