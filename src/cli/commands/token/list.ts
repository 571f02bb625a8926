// token list: shows the tokens without their hashes; their secrets are not stored.
import type { Command } from 'commander'
import { loadDatabaseUrl } from '../../../config/load-config.ts'
import { openView } from '../../../store/open.ts'
import { selectRows } from '../../../store/view.ts'
import { type Token, tokenColumns, toToken } from '../../../tokens/tokens.ts'
import { printResult } from '../../console/output.ts'
import { formatTable } from '../../console/table.ts'
import { databaseOption } from '../../setting-options.ts'
import { formatTime } from './duration.ts'

export function defineList(command: Command): void {
  command
    .description('List all tokens, without their secrets.')
    .addOption(databaseOption())
    .option('--json', 'as JSON')
    .action(async ({ databaseUrl, json }: { databaseUrl?: string; json?: true }) => {
      const view = await openView(loadDatabaseUrl(databaseUrl))
      try {
        const found = await selectRows(view, tokenColumns, 'FROM tokens ORDER BY created_at, id')
        const rows = found.map((row) => show(toToken(row)))
        printResult(rows, formatTokens(rows), json)
      } finally {
        await view.close()
      }
    })
}

function show({ id, name, scopes, createdAt, expiresAt, lastUsedAt, revokedAt }: Token) {
  const times = {
    created: formatTime(createdAt),
    expires: formatTime(expiresAt),
    lastUsed: formatTime(lastUsedAt),
    revoked: formatTime(revokedAt),
  }
  return { id, name, scopes, ...times }
}

function formatTokens(rows: ReturnType<typeof show>[]): string {
  const head = ['ID', 'NAME', 'SCOPES', 'CREATED', 'EXPIRES', 'LAST USED', 'REVOKED']
  return formatTable(
    head,
    rows.map((row) => Object.values(row).map((value) => [value ?? '-'].flat().join(' '))),
  )
}
