// Starts the service in this process, with access to its tokens.
import type { Test } from 'tap'
import { createToken, type NewToken } from '../../src/tokens/tokens.ts'
import { sqlite } from '../support/engines.ts'
import { request, type StartOptions, startApp } from '../support/service.ts'
import { openStore, type Store } from '../support/stores.ts'

export const plant = { name: 'Alder', tag: 'Alnus' }
export const idOf = (text: string) => text.slice(6, 14)

/** `change`: replaces parts of the store. */
type Options = StartOptions & { database?: string; change?: (store: Store) => Partial<Store> }

export async function start(t: Test, { database, change, ...options }: Options = {}) {
  const store = await openStore(database ?? (await sqlite.createDatabase(t)))
  const running = await startApp(t, '', { store: { ...store, ...change?.(store) }, ...options })
  const create = async (token: NewToken) => (await createToken(store.tokens, token)) as string
  const revoke = (text: string) => store.tokens.revoke(idOf(text), Date.now())
  return { ...running, create, revoke, ...callers(running.url) }
}

/** Makes functions that list and add with a token, or without credentials. */
export function callers(url: string) {
  return {
    list: (text: string | undefined, query = '') => ask(`${url}/plants${query}`, text),
    add: (text: string | undefined) => ask(`${url}/plants`, text, plant),
  }
}

export function ask(url: string, text: string | undefined, body?: object) {
  return request(url, { body, headers: { authorization: text === undefined ? '' : `Bearer ${text}` } })
}
