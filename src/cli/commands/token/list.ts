// token list: shows all that is known of the tokens, which is not their secrets.
import { Command } from 'commander'
import { databaseOption } from '../../config/options.ts'
import { printResult } from '../../console/output.ts'
import { formatTable } from '../../console/table.ts'
import type { Token } from '../../tokens/tokens.ts'
import { type TokenOptions, withTokens } from './with-tokens.ts'

export function listCommand(): Command {
  return new Command('list')
    .description('List all tokens, without their secrets.')
    .addOption(databaseOption())
    .option('--json', 'as JSON')
    .action((options: TokenOptions) =>
      withTokens(options, async (tokens) => {
        const rows = (await tokens.list()).map(show)
        printResult(rows, formatTokens(rows), options.json)
      }),
    )
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
