// Prism as a proxy before the service, as it comes: it validates each request and each answer by the document, says in a
// header what violates it, and has to agree with the service on awkward texts, wrong types and unknown members.
import { createServer } from 'node:net'
import { acceptedNames, namesOfOtherLength, refusedNames } from '../test/support/texts.ts'
import { bin, type Outcome, type Subject, startServer, stop, versionOf } from './tools.ts'

type Exchange = {
  what: string
  path: string
  body?: unknown
  headers?: Record<string, string>
  status: number
}

const plants = '/plants'
const exchanges: Exchange[] = [
  ...acceptedNames.flatMap(([what, text]) => [
    { what: `${what}, as a name`, path: plants, body: { name: text, tag: '' }, status: 200 },
    { what: `${what}, as a tag`, path: plants, body: { name: 'a', tag: text }, status: 200 },
  ]),
  ...[...refusedNames, ...namesOfOtherLength].map(([what, name]) => {
    return { what, path: plants, body: { name, tag: '' }, status: 400 }
  }),
  { what: 'white space alone, as a tag', path: plants, body: { name: 'a', tag: '\u00A0' }, status: 200 },
  { what: 'an empty tag', path: plants, body: { name: 'a', tag: '' }, status: 200 },
  { what: 'the largest id', path: plants, body: { name: 'a', tag: '', id: 2 ** 53 - 1 }, status: 200 },
  { what: 'a larger id', path: plants, body: { name: 'a', tag: '', id: 2 ** 53 }, status: 400 },
  { what: 'an id below 0', path: plants, body: { name: 'a', tag: '', id: -1 }, status: 400 },
  { what: 'half an id', path: plants, body: { name: 'a', tag: '', id: 0.5 }, status: 400 },
  { what: 'a text as id', path: plants, body: { name: 'a', tag: '', id: '1' }, status: 400 },
  { what: 'no tag', path: plants, body: { name: 'a' }, status: 400 },
  { what: 'null as tag', path: plants, body: { name: 'a', tag: null }, status: 400 },
  { what: 'an unknown member', path: plants, body: { name: 'a', tag: '', colour: 'red' }, status: 400 },
  { what: 'a cursor of no form', path: `${plants}?after=x`, status: 400 },
  { what: 'a list as body', path: plants, body: [], status: 400 },
  // By the second time the service has it compressed.
  { what: 'the whole list', path: plants, status: 200 },
  { what: 'the whole list, again', path: plants, status: 200 },
  { what: 'the whole list, once more', path: plants, status: 200 },
  { what: 'a page', path: `${plants}?limit=2`, status: 200 },
  { what: 'a page of nothing', path: `${plants}?limit=0`, status: 200 },
  { what: 'a limit below 0', path: `${plants}?limit=-1`, status: 400 },
  { what: 'a limit that is no number', path: `${plants}?limit=x`, status: 400 },
  { what: 'a list that is known', path: plants, headers: { 'if-none-match': '*' }, status: 304 },
  { what: 'a list that is another', path: plants, headers: { 'if-match': '"x"' }, status: 412 },
]

/** Refused by the service for more than the document can say: that is no fault of the request for Prism. */
const onlyByService: Exchange[] = [
  { what: 'a made-up cursor', path: `${plants}?after=2s-qM0f3zj9c1E`, status: 400 },
  { what: 'a parameter that is unknown', path: `${plants}?limt=5`, status: 400 },
]

export async function checkWithPrism({ file, url, token }: Subject): Promise<Outcome> {
  const port = await findFreePort()
  const { child } = await startServer([bin('prism'), 'proxy', file, url, '--port', String(port)], {
    ready: /Prism is listening/,
  })
  const failures: string[] = []
  const proxy = `http://127.0.0.1:${port}`
  const ask = async (exchange: Exchange, found: string[]) => {
    const { status, violations, text } = await send(proxy, token, exchange)
    if (status !== exchange.status)
      failures.push(`${exchange.what}: ${status}, not ${exchange.status}: ${text}`)
    if (String(violations) !== String(found)) failures.push(`${exchange.what}: violations ${violations}`)
  }
  try {
    for (const exchange of exchanges) await ask(exchange, exchange.status === 400 ? ['request'] : [])
    for (const exchange of onlyByService) await ask(exchange, [])
  } finally {
    await stop(child)
  }
  const version = versionOf('@stoplight/prism-cli')
  const cases = exchanges.length + onlyByService.length
  return { tool: 'Prism (validating proxy)', version, cases, failures, explained: 0 }
}

/** `violations`: of which side of the exchange Prism found some. */
async function send(origin: string, token: string, { path, body, headers }: Exchange) {
  const isPost = body !== undefined
  const answer = await fetch(`${origin}${path}`, {
    method: isPost ? 'POST' : 'GET',
    headers: {
      authorization: `Bearer ${token}`,
      ...(isPost && { 'content-type': 'application/json' }),
      ...headers,
    },
    ...(isPost && { body: JSON.stringify(body) }),
  })
  const found: { location: [string] }[] = JSON.parse(answer.headers.get('sl-violations') ?? '[]')
  const violations = [...new Set(found.map(({ location }) => location[0]))]
  return { status: answer.status, violations, text: (await answer.text()).slice(0, 500) }
}

async function findFreePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => server.once('listening', resolve))
  const { port } = server.address() as { port: number }
  await new Promise((resolve) => server.close(resolve))
  return port
}
