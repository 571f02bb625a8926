// openapi-enforcer reads headers and methods: an answer that lacks a required header, or a method that is answered
// otherwise than by 405 with the methods of the document, fails. It knows OpenAPI 3.0.
import { request } from 'node:http'
import { load, type Outcome, type Subject, versionOf } from './tools.ts'

// biome-ignore lint/suspicious/noExplicitAny: its objects are used, not known.
type Any = any
type Sent = { method: string; path: string; headers?: Record<string, string>; body?: string }
type Answer = { status: number; headers: Record<string, string>; body: string }

const json = { 'content-type': 'application/json' }
const plant = '{"name":"Alder","tag":"Alnus","id":7}'

/** Requests of each operation, for as many statuses as a client alone can bring about. */
const sent: Sent[] = [
  { method: 'POST', path: '/plants', headers: json, body: plant },
  { method: 'POST', path: '/plants', headers: json, body: '{"name":"","tag":5}' },
  { method: 'POST', path: '/plants', headers: json, body: plant.replace('Alnus', '') },
  { method: 'POST', path: '/plants', headers: { ...json, 'if-match': '"x"' }, body: plant },
  { method: 'POST', path: '/plants', headers: json, body: ' '.repeat(20_000) },
  { method: 'POST', path: '/plants', headers: { 'content-type': 'text/plain' }, body: plant },
  { method: 'POST', path: '/plants', headers: { ...json, 'content-encoding': 'gzip' }, body: plant },
  { method: 'POST', path: '/plants', headers: { ...json, authorization: 'Bearer x' }, body: plant },
  ...['GET', 'HEAD'].flatMap((method) => [
    { method, path: '/plants' },
    { method, path: '/plants?limit=-1' },
    { method, path: '/plants', headers: { 'if-none-match': '*' } },
    { method, path: '/plants', headers: { 'if-match': '"x"' } },
    { method, path: '/plants', headers: { authorization: 'Bearer x' } },
    { method, path: '/plants', headers: { 'x-long': 'x'.repeat(20_000) } },
    { method, path: `/plants?limit=${'1'.repeat(9000)}` },
  ]),
]
const otherMethods = ['PUT', 'PATCH', 'DELETE', 'TRACE']

export async function checkWithEnforcer({ url, token }: Subject): Promise<Outcome> {
  const Enforcer = load('openapi-enforcer')
  const older: Any = await (await fetch(`${url}/openapi-3.0.json`)).json()
  const [openapi, fault] = await Enforcer(older, { fullResult: true })
  if (fault) throw new Error(`openapi-enforcer does not take the document: ${fault}`)
  const failures: string[] = []
  for (const one of sent) {
    const found = judge(openapi, one, await send(url, token, one))
    if (found) failures.push(`${one.method} ${one.path.slice(0, 40)}: ${found}`)
  }
  for (const method of otherMethods) {
    const [, refused] = openapi.request({ method, path: '/plants' })
    const { status, headers } = await send(url, token, { method, path: '/plants' })
    const said = `${status} ${headers.allow}`
    const allow = Object.keys(older.paths['/plants']).map((name) => name.toUpperCase())
    const expected = `${refused.statusCode} ${['GET', 'HEAD', 'POST'].filter((one) => allow.includes(one)).join(', ')}`
    if (said !== expected) failures.push(`${method}: ${said}, not ${expected}`)
  }
  const version = versionOf('openapi-enforcer')
  const cases = sent.length + otherMethods.length
  return { tool: 'openapi-enforcer (headers, methods)', version, cases, failures, explained: 0 }
}

/** What is wrong about an answer; undefined when nothing is. */
function judge(openapi: Any, { method, path }: Sent, { status, headers, body }: Answer): string | undefined {
  const operation = openapi.paths[path.split('?', 1)[0] as string][method.toLowerCase()]
  const described = operation.responses[status]
  if (!described) return `${status} is not documented`
  const named = Object.keys(described.headers ?? {}).map((name) => name.toLowerCase())
  const values = Object.fromEntries(Object.entries(headers).filter(([name]) => named.includes(name)))
  const content = described.content && { 'content-type': headers['content-type'] }
  const [, fault] = operation.response(status, described.content ? JSON.parse(body) : undefined, {
    ...values,
    ...content,
  })
  return fault && `${status}: ${fault}`
}

function send(url: string, token: string, { method, path, headers, body }: Sent): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const all = { authorization: `Bearer ${token}`, ...headers }
    const asked = request(`${url}${path}`, { method, headers: all, agent: false }, (answer) => {
      let text = ''
      answer.setEncoding('utf8').on('data', (chunk) => (text += chunk))
      answer.on('end', () =>
        resolve({
          status: Number(answer.statusCode),
          headers: answer.headers as Answer['headers'],
          body: text,
        }),
      )
    })
    asked.on('error', reject).end(body)
  })
}
