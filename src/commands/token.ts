// token: creates, lists, rotates and revokes access tokens.
import { type Command, InvalidArgumentError, Option } from 'commander'
import { CommandError, formatTable, printResult } from '../cli/console.ts'
import { addDatabaseOptions, type DatabaseOptions, findDatabase } from '../cli/options.ts'
import type { Token, TokenTable } from '../store/engine.ts'
import { withStore } from '../store/engines.ts'
import { hashToken, readTokenId } from '../tokens/format.ts'
import { createToken, isValidAt, rotateToken, type Scope, scopes } from '../tokens/tokens.ts'
import { commandName } from '../version.ts'

const maxNameLength = 100
const dayMs = 24 * 3_600_000
/** Seconds by unit of a duration. */
const units: Record<string, number> = { s: 1, m: 60, h: 3600, d: 86_400, w: 604_800, y: 31_536_000 }
const listCommand = `${commandName} token list`
const listHead = ['ID', 'NAME', 'SCOPES', 'CREATED', 'EXPIRES', 'LAST USED', 'REVOKED']

const rotateHelp = `
The new token has the name, scopes and lifetime of the old one: a token for 90 days is replaced by one that expires 90 days
from now. The old token stays valid for the overlap, such as 30m or 7d, unless it expires earlier; --overlap 0s ends it at
once. A token can be rotated once; then rotate the new one.`

export function define(command: Command): void {
  defineCreate(addDatabaseOptions(command.command('create')))
  defineList(addDatabaseOptions(command.command('list')))
  defineRotate(addDatabaseOptions(command.command('rotate')))
  defineRevoke(addDatabaseOptions(command.command('revoke')))
}

function defineCreate(command: Command): void {
  command
    .description('Create a token and print it. It cannot be shown again.')
    .requiredOption('--name <name>', 'its purpose or owner, unique among valid tokens', parseName)
    .addOption(new Option('--scope <scope...>', 'scopes of the token (default: all)').choices(scopes))
    .option('--expires <time>', 'a duration (90d) or the last valid day (2030-01-31, UTC)', parseExpiry)
    .action((options: DatabaseOptions & { name: string; scope?: Scope[]; expires?: number }) =>
      withTokens(options, async (table) => {
        const { name, scope = scopes, expires = null, json } = options
        const allowed = [...new Set(scope)]
        const token = await createToken(table, { name, scopes: allowed, expiresAt: expires })
        if (token === undefined)
          throw new CommandError(`a valid token named "${name}" exists: choose another name, or revoke it`)
        const id = String(readTokenId(token))
        await printResult({ id, name, scopes: allowed, expires: formatTime(expires), token }, token, json)
        if (expires !== null && !json) console.error(`${id} expires at ${formatTime(expires)}`)
      }),
    )
}

function parseName(text: string): string {
  if (text.trim() === '' || [...text].length > maxNameLength || /\p{Cc}/u.test(text))
    throw new InvalidArgumentError(`Expected 1 to ${maxNameLength} characters, and no control characters.`)
  return text
}

function defineList(command: Command): void {
  command.description('List all tokens, without their secrets.').action((options: DatabaseOptions) =>
    withStore(findDatabase(options), { mode: 'read' }, async (store) => {
      const rows = (await store.tokens.all()).map(describeToken)
      const cells = rows.map((row) => Object.values(row).map((value) => [value ?? '-'].flat().join(' ')))
      await printResult(rows, formatTable(listHead, cells), options.json)
    }),
  )
}

/** Returns the displayed properties of a token, in the order of the table. */
function describeToken({ id, name, scopes, createdAt, expiresAt, lastUsedAt, revokedAt }: Token) {
  const [created, expires, lastUsed, revoked] = [createdAt, expiresAt, lastUsedAt, revokedAt].map(formatTime)
  return { id, name, scopes, created, expires, lastUsed, revoked }
}

function defineRotate(command: Command): void {
  command
    .description('Replace a token with a new one; the old one stays valid for a while.')
    .argument('<token>', 'its name, its id or the whole token')
    .option('--overlap <duration>', 'how long the old token stays valid (default: 24h)', parseDuration)
    .addHelpText('after', rotateHelp)
    .action((text: string, options: DatabaseOptions & { overlap?: number }) =>
      withTokens(options, async (table) => {
        const former = await findToken(table, text)
        const { overlap = dayMs, json } = options
        const rotated = await rotateToken(table, former, { overlapMs: overlap })
        const { id: replaces, name, scopes } = former
        const reason = `it is no longer valid, or a newer one has replaced it (${listCommand})`
        if (rotated === undefined) throw new CommandError(`token ${replaces} cannot be rotated: ${reason}`)
        const { id, token, expiresAt, formerExpiresAt } = rotated
        const [expires, replacedExpires] = [expiresAt, formerExpiresAt].map(formatTime)
        await printResult({ id, name, scopes, expires, token, replaces, replacedExpires }, token, json)
        if (!json) console.error(`${id} replaces ${replaces}, which expires at ${replacedExpires}`)
      }),
    )
}

function defineRevoke(command: Command): void {
  command
    .description('Revoke a token. This takes effect within 5 seconds on every replica.')
    .argument('<token>', 'its name, its id or the whole token')
    .action((text: string, options: DatabaseOptions) =>
      withTokens(options, async (table) => {
        const { id, name } = await findToken(table, text)
        if (!(await table.revoke(id, Date.now()))) throw new CommandError(`token ${id} is already revoked`)
        await printResult({ id, name }, `revoked ${id}`, options.json)
      }),
    )
}

/** Opens the database, which must exist, for the duration of `work`. */
const withTokens = (options: DatabaseOptions, work: (table: TokenTable) => Promise<void>) =>
  withStore(findDatabase(options), { mode: 'write' }, (store) => work(store.tokens))

/**
 * Finds a token by its name (if it is valid), its id or the whole token. The id in a whole token is not sufficient: the
 * first tokens of all stores have the same id. Throws CommandError, with a message that contains no secret.
 */
async function findToken(table: TokenTable, text: string): Promise<Token> {
  const hash = hashToken(text)
  const isValid = isValidAt(Date.now())
  const matches = (one: Token) => one.hash === hash || one.id === text || (one.name === text && isValid(one))
  // Not the secret, which the database might log.
  const found = (await table.search(readTokenId(text) ?? text, hash)).filter(matches)
  const [token, ...others] = found
  if (token === undefined)
    throw new CommandError(`no token has this id or value, and no valid one has this name (${listCommand})`)
  const exact = found.find(({ id, revokedAt }) => id === text && revokedAt === null)
  if (exact || others.length === 0) return exact ?? token
  // Two valid tokens have the same name during the overlap of a rotation.
  const ids = found.map(({ id, createdAt }) => `${id} (created at ${formatTime(createdAt)})`).join(' or ')
  throw new CommandError(`${found.length} tokens are named "${text}"; give an id, oldest first: ${ids}`)
}

/** Returns the expiry of a token in milliseconds since 1970: for a date, the end of that day (UTC). */
function parseExpiry(text: string): number {
  const day = new Date(text)
  // The round trip excludes other formats and invalid dates such as 2030-02-30.
  const isDay = /^\d{4}-/.test(text) && day.toJSON() === `${text}T00:00:00.000Z`
  const time = isDay ? day.getTime() + dayMs : Date.now() + (readDuration(text) ?? 0)
  if (time > Date.now()) return time
  throw new InvalidArgumentError('Expected a duration such as 90d, or a future date such as 2030-01-31.')
}

/** Formats milliseconds since 1970 as ISO 8601 in UTC; null stays null. */
const formatTime = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())

/** Parses a duration to milliseconds. */
function parseDuration(text: string): number {
  const duration = readDuration(text)
  if (duration !== undefined) return duration
  throw new InvalidArgumentError('Expected a duration such as 24h, or 0s.')
}

/** Parses a duration of at most 99,999 years, which a Date can represent. */
function readDuration(text: string): number | undefined {
  const [, count, unit] = /^(\d{1,5})([smhdwy])$/.exec(text) ?? []
  return unit === undefined ? undefined : Number(count) * (units[unit] as number) * 1000
}
