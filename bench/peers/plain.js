// The baseline for starts. In plain JavaScript, because loading the type stripper takes longer than everything else.
import { createServer } from 'node:http'

const host = '127.0.0.1'
const server = createServer((_request, response) => response.end('[]'))

server.listen(Number(process.env.PORT), host, () => {
  console.log(`listening on http://${host}:${server.address().port}`)
})
