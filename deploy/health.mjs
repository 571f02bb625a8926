// The health check of the image: requests /readyz of the admin server.
import { Agent, get } from 'node:http'
import { text } from 'node:stream/consumers'

// A separate agent uses no proxy, even with NODE_USE_ENV_PROXY.
const request = get(`http://127.0.0.1:${process.env.ADMIN_PORT}/readyz`, { agent: new Agent() })
request.on('response', async (response) => {
  if (response.statusCode === 200) process.exit(0)
  fail(await text(response))
})
request.on('error', ({ message }) => fail(message))

function fail(reason) {
  console.error(reason)
  process.exit(1)
}
