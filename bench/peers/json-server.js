// json-server as its documentation shows it, with the same bearer check, parameter and status. It stores plants in one
// JSON file, without fsync.
import { writeFileSync } from 'node:fs'
import jsonServer from 'json-server'
import { announce, host, plants, port, setting } from './peer.ts'

const token = setting('ACCESS_TOKENS')
const app = jsonServer.create()
const file = setting('DATABASE_FILE')
writeFileSync(file, JSON.stringify({ plants: plants.map((plant, id) => ({ id, ...plant })) }))
const router = jsonServer.router(file)
router.render = (_request, response) => response.status(200).jsonp(response.locals.data)

app.use(jsonServer.defaults({ logger: false }))
app.use((request, response, next) => {
  if (request.headers.authorization === `Bearer ${token}`) next()
  else response.status(401).json({ title: 'Unauthorized', status: 401 })
})
app.use(jsonServer.rewriter({ '/plants\\?limit=:limit': '/plants?_limit=:limit' }))
app.use(router)

const server = app.listen(port, host, () => announce(server))
