// The floor: node:http with nothing around it. It checks nothing and stores nothing.
import { createReadStream, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { announce, host, port, setting } from './settings.ts'

const list = readFileSync(setting('LIST_FILE'))
const wholeList = process.env.WHOLE_LIST_FILE

const server = createServer((request, response) => {
  if (request.method === 'POST') echo(request, response)
  else if (request.url === '/unchanged') response.writeHead(304, { etag: '"1"' }).end()
  else if (request.url === '/whole' && wholeList) pipeFile(wholeList, response)
  else
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': list.length }).end(list)
})

function echo(request: IncomingMessage, response: ServerResponse): void {
  let text = ''
  request.setEncoding('utf8')
  request.on('data', (chunk: string) => {
    text += chunk
  })
  request.on('end', () => {
    const { name, tag } = JSON.parse(text)
    const body = Buffer.from(JSON.stringify({ name, tag }))
    response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
  })
}

function pipeFile(path: string, response: ServerResponse): void {
  response.writeHead(200, { 'content-type': 'application/json' })
  pipeline(createReadStream(path), response, () => {})
}

server.listen(port, host, () => announce(server))
