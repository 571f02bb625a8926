// Shared by the tests of the client: a client, the service, and a front between them.
import tap, { type Test } from 'tap'
import { type Plant, PlantStore, PlantStoreError, type RetryOptions } from '../../client/src/index.ts'
import { request, startApp, token } from '../support/service.ts'
import { openFailing } from '../support/stores.ts'
import { type Fault, type Front, startFront } from './front.ts'

export const alder = { name: 'Black alder', tag: 'Alnus glutinosa' }

/** Short pauses, so that tests are fast. */
export const soon: RetryOptions = { baseMs: 1, maxMs: 1 }

/** Starts a service whose store fails once for each of `storeFaults`. */
export async function startFailing(t: Test) {
  const { store, faults: storeFaults } = await openFailing(t)
  return { url: (await startApp(t, '', { store })).url, storeFaults }
}

/** The service that all tests of a file share. */
let shared: ReturnType<typeof startFailing> | undefined
const share = () => (shared ??= startFailing(tap))

/** Makes a client that reaches the service through a front. `listed`: lists the plants that were added since. */
export async function setUp(t: Test, faults: Fault[] = [], retry: RetryOptions = soon, own = share()) {
  const { url, storeFaults } = await own
  const front = await startFront(t, url)
  front.faults.push(...faults)
  const store = new PlantStore({ baseUrl: front.url, token, retry })
  const all = async () => (await request(`${url}/plants`)).json() as Plant[]
  const { length: before } = await all()
  return { store, front, listed: async () => (await all()).slice(before), storeFaults }
}

/** The ids that a client has sent. */
export const ids = ({ seen }: Front) => seen.map(({ body }) => JSON.parse(body).id as number)

/** Resolves to the error of a call; fails the test if there is none. */
export async function rejection(t: Test, call: Promise<unknown>): Promise<Error> {
  const [result] = await Promise.allSettled([call])
  if (result.status === 'fulfilled') t.fail('it should have been rejected')
  return (result as PromiseRejectedResult).reason
}

export async function refusal(t: Test, call: Promise<unknown>): Promise<PlantStoreError> {
  const error = await rejection(t, call)
  t.ok(error instanceof PlantStoreError, `${error}`)
  return error as PlantStoreError
}
