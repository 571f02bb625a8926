// One INSERT a request through a pg Pool, with nothing around it: what group commit is measured against.
import { createServer } from 'node:http'
import { json } from 'node:stream/consumers'
import pg from 'pg'
import { announce, host, port, setting } from './settings.ts'

const pool = new pg.Pool({ connectionString: setting('DATABASE_URL'), max: 10 })
await pool.query(
  'CREATE TABLE IF NOT EXISTS peer_plants (id bigserial PRIMARY KEY, name text NOT NULL, tag text NOT NULL)',
)

const server = createServer(async (request, response) => {
  const { name, tag } = (await json(request)) as { name: string; tag: string }
  await pool.query('INSERT INTO peer_plants (name, tag) VALUES ($1, $2)', [name, tag])
  const body = Buffer.from(JSON.stringify({ name, tag }))
  response.writeHead(200, { 'content-type': 'application/json', 'content-length': body.length }).end(body)
})

server.listen(port, host, () => announce(server))
