// Shared by the token commands: opening the store, and finding the token that the user means.
import pino from 'pino'
import { loadDatabaseUrl } from '../../../config/load-config.ts'
import { openStore } from '../../../store/open.ts'
import { type Store, StoreRefused } from '../../../store/store.ts'
import { readTokenId } from '../../../tokens/format.ts'
import { hashToken, type Token, Tokens } from '../../../tokens/tokens.ts'

export type TokenOptions = { databaseUrl?: string; json?: true }

/** Opens the database, which must exist, for as long as the work takes. */
export async function withTokens(
  { databaseUrl }: TokenOptions,
  work: (tokens: Tokens, store: Store) => Promise<void>,
): Promise<void> {
  const store = await openStore(loadDatabaseUrl(databaseUrl), {
    logger: pino({ level: 'error' }, pino.destination(2)),
    mustExist: true,
    keepsSchema: true,
  })
  try {
    await work(new Tokens(store.sql), store)
  } finally {
    await store.close()
  }
}

/**
 * Finds a token by its name, its id or its whole text, whose secret must match: the first tokens of all stores share
 * one id. Throws StoreRefused, with a message that repeats no secret.
 */
export async function findToken(tokens: Tokens, text: string): Promise<Token> {
  const wholeId = readTokenId(text)
  const id = wholeId ?? text
  const found =
    wholeId === undefined ? await tokens.findNamed(text) : [...(await tokens.find([wholeId])).values()]
  const [token, ...others] = found
  if (token === undefined)
    throw new StoreRefused(
      /^[0-9A-Za-z]{8}$/.test(id)
        ? `there is no token ${id}`
        : 'that is neither the name of a valid token, nor an id, nor a whole token (plant-store token list)',
    )
  if (others.length > 0)
    throw new StoreRefused(
      `${found.length} tokens are "${text}": give one of ${found.map((one) => one.id).join(', ')}`,
    )
  if (wholeId !== undefined && token.hash !== hashToken(text))
    throw new StoreRefused(`the token ${id} of this store is another one: nothing was changed`)
  return token
}
