// Validators in zod by orval: they accept what the service answers, and what it would accept.
import { acceptedNames, refusedNames } from '../../test/support/texts.ts'
import { CreatePlantBody, CreatePlantResponse, ListPlantsResponse } from '../generated/orval.ts'
import { expect, explain, service, tell } from './telling.ts'

const headers = { authorization: `Bearer ${service.token}`, 'content-type': 'application/json' }

/** zod counts UTF-16 units, so it refuses more than 127 characters beyond the first plane; the guide says so. */
const isTooLongForZod = (name: string) => name.length > 255

for (const [what, name] of acceptedNames) {
  const body = JSON.stringify({ name, tag: name })
  const answer: unknown = await (
    await fetch(`${service.url}/plants`, { method: 'POST', headers, body })
  ).json()
  if (isTooLongForZod(name)) explain()
  else {
    expect(`${what}, sent`, CreatePlantBody.safeParse({ name, tag: name }).success, true)
    expect(`${what}, returned`, CreatePlantResponse.safeParse(answer).success, true)
  }
}
for (const [what, name] of refusedNames)
  expect(what, CreatePlantBody.safeParse({ name, tag: '' }).success, false)

const list = (await (await fetch(`${service.url}/plants`, { headers })).json()) as { name: string }[]
const short = list.filter(({ name }) => !isTooLongForZod(name))
expect('a list', ListPlantsResponse.safeParse(short).data, short)
tell()
