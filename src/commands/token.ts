// token: issues, lists and revokes access tokens.
import { Command, InvalidArgumentError, Option } from 'commander'
import pino from 'pino'
import { loadDatabaseUrl } from '../config/config.ts'
import { databaseOption } from '../config/options.ts'
import { printResult } from '../console/output.ts'
import { formatTable } from '../console/table.ts'
import { openStore } from '../store/open.ts'
import { StoreRefused } from '../store/store.ts'
import { readTokenId } from '../tokens/format.ts'
import { type Scope, scopes, type Token, Tokens } from '../tokens/tokens.ts'

const unitMs: Record<string, number> = {
  s: 1000,
  m: 60_000,
  h: 3_600_000,
  d: 86_400_000,
  w: 604_800_000,
  y: 31_536_000_000,
}
type Options = { databaseUrl?: string; json?: true }
type CreateOptions = Options & { name: string; scope?: Scope[]; expires?: number }

const maxNameLength = 100

export function tokenCommand(): Command {
  const command = new Command('token').description('Issue, list and revoke access tokens.')
  command
    .command('create')
    .description('Issue a token and print it. It cannot be shown again.')
    .requiredOption('--name <name>', 'what or whom it is for', parseName)
    .addOption(new Option('--scope <scope...>', 'what it allows (default: all)').choices(scopes))
    .option('--expires <time>', 'a span like 12h, 90d, 1y, or a time like 2030-01-31', parseExpiry)
    .addOption(databaseOption())
    .option('--json', 'as JSON')
    .action((options: CreateOptions) =>
      withTokens(options, async (tokens) => {
        const { name, scope = scopes, expires = null, json } = options
        const token = await tokens.create({ name, scopes: [...new Set(scope)], expiresAt: expires })
        printResult({ id: readTokenId(token), token }, token, json)
      }),
    )
  command
    .command('list')
    .description('List all tokens, without their secrets.')
    .addOption(databaseOption())
    .option('--json', 'as JSON')
    .action((options: Options) =>
      withTokens(options, async (tokens) => {
        const rows = (await tokens.list()).map(show)
        printResult(rows, formatTokens(rows), options.json)
      }),
    )
  command
    .command('revoke')
    .description('Revoke a token, within 5 seconds on every replica.')
    .argument('<id>', 'the 8 characters after plant_')
    .addOption(databaseOption())
    .option('--json', 'as JSON')
    .action((id: string, options: Options) =>
      withTokens(options, async (tokens) => {
        if (!(await tokens.revoke(id)))
          throw new StoreRefused(`there is no token ${id} that could be revoked`)
        printResult({ revoked: id }, `revoked ${id}`, options.json)
      }),
    )
  return command
}

async function withTokens({ databaseUrl }: Options, work: (tokens: Tokens) => Promise<void>): Promise<void> {
  const store = await openStore(loadDatabaseUrl(databaseUrl), {
    logger: pino({ level: 'error' }, pino.destination(2)),
    mustExist: true,
  })
  try {
    await work(new Tokens(store.sql))
  } finally {
    await store.close()
  }
}

function parseName(text: string): string {
  if (text.trim() === '' || text.length > maxNameLength || /[\u0000-\u001f\u007f]/.test(text))
    throw new InvalidArgumentError(`It takes 1 to ${maxNameLength} characters, and no control characters.`)
  return text
}

/** The time at which a token expires, in milliseconds since 1970. */
function parseExpiry(text: string): number {
  const [, count, unit] = /^(\d{1,6})([smhdwy])$/.exec(text) ?? []
  const time = unit ? Date.now() + Number(count) * (unitMs[unit] as number) : Date.parse(text)
  if (!(time > Date.now()))
    throw new InvalidArgumentError('It takes a span like 90d or a time to come like 2030-01-31.')
  return time
}

function show({ id, name, scopes, createdAt, expiresAt, lastUsedAt, revokedAt }: Token) {
  const time = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString())
  const times = {
    created: time(createdAt),
    expires: time(expiresAt),
    lastUsed: time(lastUsedAt),
    revoked: time(revokedAt),
  }
  return { id, name, scopes: scopes.join(' '), ...times }
}

function formatTokens(rows: ReturnType<typeof show>[]): string {
  const head = ['ID', 'NAME', 'SCOPES', 'CREATED', 'EXPIRES', 'LAST USED', 'REVOKED']
  return formatTable(
    head,
    rows.map((row) => Object.values(row).map((value) => value ?? '-')),
  )
}
