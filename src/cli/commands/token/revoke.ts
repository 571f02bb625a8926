// token revoke: ends a token.
import { Command } from 'commander'
import { StoreRefused } from '../../../store/store.ts'
import { printResult } from '../../console/output.ts'
import { databaseOption } from '../../setting-options.ts'
import { findToken, type TokenOptions, withTokens } from './with-tokens.ts'

export function revokeCommand(): Command {
  return new Command('revoke')
    .description('Revoke a token, within 5 seconds on every replica.')
    .argument('<token>', 'its name, its id or the whole token')
    .addOption(databaseOption())
    .option('--json', 'as JSON')
    .action((text: string, options: TokenOptions) =>
      withTokens(options, async (tokens) => {
        const { id, name } = await findToken(tokens, text)
        if (!(await tokens.revoke(id))) throw new StoreRefused(`token ${id} is already revoked`)
        printResult({ id, name }, `revoked ${id}`, options.json)
      }),
    )
}
