// A client by openapi-typescript and openapi-fetch: its types match the responses, including problems.
import createClient from 'openapi-fetch'
import { acceptedNames, refusedNames } from '../../test/contract/texts.ts'
import type { components, paths } from '../generated/openapi-typescript.ts'
import { expect, printReport, service } from './report.ts'

type Plant = components['schemas']['Plant']
const client = createClient<paths>({
  baseUrl: service.url,
  headers: { authorization: `Bearer ${service.token}` },
})

const added: Plant[] = []
for (const [what, name] of acceptedNames) {
  const { data } = await client.POST('/plants', { body: { name, tag: name } })
  const plant: Plant | undefined = data
  expect(what, plant, { name, tag: name })
  if (plant) added.push(plant)
}
for (const [what, name] of refusedNames) {
  const { error } = await client.POST('/plants', { body: { name, tag: '' } })
  const place: string | undefined = error?.errors?.[0]?.pointer
  expect(what, place, '/name')
}

await client.POST('/plants', { body: { name: 'Alder', tag: 'Alnus', id: 1 } })
const conflict = await client.POST('/plants', { body: { name: 'Alder', tag: 'Quercus', id: 1 } })
const type: components['schemas']['ProblemType'] | string | undefined = conflict.error?.type
expect('a conflict', type, '/problems/id-conflict' satisfies components['schemas']['ProblemType'])
const list = await client.GET('/plants', { params: { query: { limit: added.length } } })
expect('a list', list.data, added)
printReport()
