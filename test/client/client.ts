// What the tests of the client share: a client, the service, and a front between them.
import type { Test } from 'tap'
import { PlantStore, PlantStoreError, type RetryOptions } from '../../client/src/index.ts'
import { request, startApp, token } from '../support/service.ts'
import { openFailing, type StoreFault } from '../support/stores.ts'
import { type Fault, type Front, startFront } from './front.ts'

export const alder = { name: 'Black alder', tag: 'Alnus glutinosa' }

/** No test waits for long. */
export const soon: RetryOptions = { baseMs: 1, maxMs: 1 }

export type Setup = {
  store: PlantStore
  front: Front
  listed: () => Promise<unknown>
  storeFaults: StoreFault[]
}

/** A client that reaches a real service through a front. The service fails once for each of `storeFaults`. */
export async function setUp(t: Test, faults: Fault[] = [], retry: RetryOptions = soon): Promise<Setup> {
  const { store: failing, faults: storeFaults } = await openFailing(t)
  const { url } = await startApp(t, '', { store: failing })
  const front = await startFront(t, url)
  front.faults.push(...faults)
  const store = new PlantStore({ baseUrl: front.url, token, retry })
  const listed = async () => (await request(`${url}/plants`)).json()
  return { store, front, listed, storeFaults }
}

/** What a call was rejected with; fails when it was not. */
export async function rejection(t: Test, call: Promise<unknown>): Promise<Error> {
  const error = await call.then(
    () => undefined,
    (error: Error) => error,
  )
  if (error === undefined) t.fail('it should have been rejected')
  return error as Error
}

export async function refusal(t: Test, call: Promise<unknown>): Promise<PlantStoreError> {
  const error = await rejection(t, call)
  t.ok(error instanceof PlantStoreError, `${error}`)
  return error as PlantStoreError
}
