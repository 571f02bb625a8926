// What the bench uses of packages that come without types.
declare module 'express' {
  import type { IncomingMessage, Server, ServerResponse } from 'node:http'

  function express(): express.Express
  namespace express {
    type Request = IncomingMessage & { body: { name: string; tag: string }; query: Record<string, string> }
    type Response = ServerResponse & { json(value: unknown): void; status(code: number): Response }
    type Handler = (request: Request, response: Response, next: () => void) => unknown
    type Express = {
      use(handler: Handler): void
      get(path: string, handler: Handler): void
      post(path: string, handler: Handler): void
      listen(port: number, host: string, ready: () => void): Server
    }
    function json(): Handler
  }
  export = express
}

declare module 'json-server' {
  import type { Express, Handler } from 'express'

  const jsonServer: {
    create(): Express
    defaults(options: { logger: boolean }): Handler
    router(file: string): Handler
  }
  export = jsonServer
}

declare module 'autocannon' {
  function autocannon(options: {
    url: string
    method: string
    headers: Record<string, string>
    body?: string
    idReplacement: boolean
    connections: number
    duration: number
  }): Promise<{
    errors: number
    non2xx: number
    duration: number
    requests: { total: number }
    latency: { p50: number; p99: number }
  }>
  export = autocannon
}
