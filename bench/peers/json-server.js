// json-server as its documentation shows it, with the same bearer check. It keeps its plants in one JSON file, in its
// own way: without fsync.
import jsonServer from 'json-server'
import { announce, host, port, setting } from './settings.ts'

const token = setting('ACCESS_TOKENS')
const app = jsonServer.create()

app.use(jsonServer.defaults({ logger: false }))
app.use((request, response, next) => {
  if (request.headers.authorization === `Bearer ${token}`) next()
  else response.status(401).json({ title: 'Unauthorized', status: 401 })
})
app.use(jsonServer.router(setting('DATABASE_FILE')))

const server = app.listen(port, host, () => announce(server))
