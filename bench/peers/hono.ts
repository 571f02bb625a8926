// The two operations as a Hono user would write them.
import { serve } from '@hono/node-server'
import { Hono } from 'hono'
import { bearerAuth } from 'hono/bearer-auth'
import { host, openDatabase, port, setting } from './peer.ts'

const { insert, select } = openDatabase(setting('DATABASE_FILE'))
const app = new Hono()

app.use('/plants', bearerAuth({ token: setting('ACCESS_TOKENS') }))

app.post('/plants', async (context) => {
  const { name, tag } = await context.req.json()
  if (typeof name !== 'string' || typeof tag !== 'string')
    return context.json({ title: 'Bad Request', status: 400 }, 400)
  insert.run(name, tag)
  return context.json({ name, tag })
})

app.get('/plants', (context) => context.json(select.all(Number(context.req.query('limit') ?? -1))))

serve({ fetch: app.fetch, port, hostname: host }, (address) => {
  console.log(`listening on http://${host}:${address.port}`)
})
