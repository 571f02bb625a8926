// The baseline: plain node:http. It checks and stores nothing. A GET returns 304, a piped file, or a list from memory.
import { createReadStream, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { announce, host, port } from './peer.ts'

const { LIST_FILE = '', PIPED, UNCHANGED } = process.env
const list = readFileSync(LIST_FILE)
const json = 'application/json'

function answerGet(response: ServerResponse): void {
  if (UNCHANGED) response.writeHead(304, { etag: '"1"' }).end()
  else if (PIPED)
    pipeline(createReadStream(LIST_FILE), response.writeHead(200, { 'content-type': json }), () => {})
  else response.writeHead(200, { 'content-type': json, 'content-length': list.length }).end(list)
}

function answerPost(request: IncomingMessage, response: ServerResponse): void {
  let text = ''
  request.setEncoding('utf8')
  request.on('data', (chunk: string) => (text += chunk))
  request.on('end', () => {
    const { name, tag } = JSON.parse(text)
    const body = Buffer.from(JSON.stringify({ name, tag }))
    response.writeHead(200, { 'content-type': json, 'content-length': body.length }).end(body)
  })
}

const server = createServer((request, response) => {
  if (request.method === 'POST') answerPost(request, response)
  else answerGet(response)
})

server.listen(port, host, () => announce(server))
