// A client by swagger-typescript-api, as it comes: classes, an enum, thrown answers.
import { acceptedNames, refusedNames } from '../../test/support/texts.ts'
import { Api, type HttpResponse, type Plant, type Problem } from '../generated/swagger-typescript-api.ts'
import { expect, service, tell } from './telling.ts'

const api = new Api({
  baseUrl: service.url,
  baseApiParams: { format: 'json', headers: { authorization: `Bearer ${service.token}` } },
})

const added: Plant[] = []
for (const [what, name] of acceptedNames) {
  const { data } = await api.plants.createPlant({ name, tag: name })
  expect(what, data, { name, tag: name })
  added.push(data)
}
for (const [what, name] of refusedNames) {
  const refused = await api.plants
    .createPlant({ name, tag: '' })
    .catch((answer: HttpResponse<Plant, Problem>) => answer)
  expect(what, refused.error?.errors?.[0]?.pointer, '/name')
}
expect('a list', (await api.plants.listPlants({ limit: 1000 })).data, added)
tell()
