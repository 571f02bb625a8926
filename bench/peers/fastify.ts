// The two operations as a Fastify user would write them.
import bearerAuth from '@fastify/bearer-auth'
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox'
import { type Static, Type } from '@sinclair/typebox'
import fastify from 'fastify'
import { announce, host, openDatabase, port, setting } from './peer.ts'

const { insert, select } = openDatabase(setting('DATABASE_FILE'))
const Plant = Type.Object({ name: Type.String(), tag: Type.String() })
const app = fastify().withTypeProvider<TypeBoxTypeProvider>()
await app.register(bearerAuth, { keys: [setting('ACCESS_TOKENS')] })

app.post('/plants', { schema: { body: Plant, response: { 200: Plant } } }, async ({ body }) => {
  insert.run(body.name, body.tag)
  return body
})

const querystring = Type.Object({ limit: Type.Integer({ default: -1 }) })
const schema = { querystring, response: { 200: Type.Array(Plant) } }
app.get('/plants', { schema }, async ({ query }) => select.all(query.limit) as Static<typeof Plant>[])

await app.listen({ host, port })
announce(app.server)
