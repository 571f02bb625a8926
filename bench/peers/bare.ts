// The floor: node:http with nothing around it. It checks nothing and, unless it is given a database, stores nothing. A GET
// is answered with 304, a file that is piped, or a list from memory, as the scenario wants.
import { createReadStream, readFileSync } from 'node:fs'
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http'
import { pipeline } from 'node:stream'
import { announce, host, port } from './peer.ts'

const { LIST_FILE, WHOLE_LIST_FILE, UNCHANGED, DATABASE_URL } = process.env
const list = LIST_FILE ? readFileSync(LIST_FILE) : Buffer.from('[]')
const insert = DATABASE_URL && (await openDatabase(DATABASE_URL))
const json = 'application/json'

function answerGet(response: ServerResponse): void {
  if (UNCHANGED) response.writeHead(304, { etag: '"1"' }).end()
  else if (WHOLE_LIST_FILE)
    pipeline(createReadStream(WHOLE_LIST_FILE), response.writeHead(200, { 'content-type': json }), () => {})
  else response.writeHead(200, { 'content-type': json, 'content-length': list.length }).end(list)
}

function answerPost(request: IncomingMessage, response: ServerResponse): void {
  let text = ''
  request.setEncoding('utf8')
  request.on('data', (chunk: string) => {
    text += chunk
  })
  request.on('end', () => {
    const { name, tag } = JSON.parse(text)
    const body = Buffer.from(JSON.stringify({ name, tag }))
    const end = () =>
      response.writeHead(200, { 'content-type': json, 'content-length': body.length }).end(body)
    if (insert) insert([name, tag]).then(end)
    else end()
  })
}

/** One INSERT per request through a pool: what group commit is measured against. */
async function openDatabase(connectionString: string): Promise<(plant: string[]) => Promise<unknown>> {
  const { default: pg } = await import('pg')
  const pool = new pg.Pool({ connectionString, max: 10 })
  const columns = 'id bigserial PRIMARY KEY, name text NOT NULL, tag text NOT NULL'
  await pool.query(`CREATE TABLE IF NOT EXISTS peer_plants (${columns})`)
  return (plant) => pool.query('INSERT INTO peer_plants (name, tag) VALUES ($1, $2)', plant)
}

const server = createServer((request, response) => {
  if (request.method === 'POST') answerPost(request, response)
  else answerGet(response)
})

server.listen(port, host, () => announce(server))
