// The two operations as an Express user would write them. In JavaScript, because express and json-server have no types.
import express from 'express'
import { announce, host, openDatabase, port, setting } from './peer.ts'

const token = setting('ACCESS_TOKENS')
const { insert, select } = openDatabase(setting('DATABASE_FILE'))
const app = express()

app.use((request, response, next) => {
  if (request.headers.authorization === `Bearer ${token}`) next()
  else response.status(401).json({ title: 'Unauthorized', status: 401 })
})
app.use(express.json())

app.post('/plants', (request, response) => {
  const { name, tag } = request.body
  if (typeof name !== 'string' || typeof tag !== 'string')
    return response.status(400).json({ title: 'Bad Request', status: 400 })
  insert.run(name, tag)
  response.json({ name, tag })
})

app.get('/plants', (request, response) => {
  response.json(select.all(Number(request.query.limit ?? -1)))
})

const server = app.listen(port, host, () => announce(server))
