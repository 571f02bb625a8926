// The least that a start can be. In plain JavaScript: loading what strips types takes longer than all the rest.
import { createServer } from 'node:http'

const host = '127.0.0.1'
const server = createServer((_request, response) => response.end('[]'))

server.listen(Number(process.env.PORT), host, () => {
  console.log(`listening on http://${host}:${server.address().port}`)
})
