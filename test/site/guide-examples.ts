// How the guide shows answers: what says nothing about the service is left out, and what differs from store to store
// is written the same way each time.

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

/** Store, epoch and mark are random; a codec's name differs between versions and processors. */
function anonymize(line: string): string {
  return line
    .replace(/"[\w-]+\.[\w-]+(\.\d+\.\d+-\d+)/, '"mWb3nZcQ.4f1c0a9be2d7$1')
    .replace(/\.(zstd|br|gzip)-[\w-]{4}"/, '.$1-x7Qa"')
    .replace(/(after=\w+)-[\w-]+/, '$1-qM0f3zj9c1E')
}

function showBody(body: string): string {
  if (body.length <= maxLine) return body
  const value: unknown = JSON.parse(body)
  if (!Array.isArray(value)) return JSON.stringify(value, null, 2)
  return `[${value.map((item) => JSON.stringify(item)).join(',\n ')}]`
}
