// Methods by which requests are told apart in metrics and spans; all others share a name, so that a scan adds none.
export const knownMethods: ReadonlySet<string> = new Set([
  ...['GET', 'HEAD', 'POST', 'PUT', 'DELETE', 'CONNECT', 'OPTIONS', 'TRACE', 'PATCH'],
])
