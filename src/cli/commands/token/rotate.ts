// token rotate: replaces a token by a new one; the old one stays valid while clients change over.
import { Command, Option } from 'commander'
import { rotateToken } from '../../../tokens/rotation.ts'
import { printResult } from '../../console/output.ts'
import { databaseOption } from '../../setting-options.ts'
import { formatTime, parseDuration } from './duration.ts'
import { findToken, type TokenOptions, withTokens } from './with-tokens.ts'

type Options = TokenOptions & { overlap: number }

const help = `
The new token has the name, the scopes and the lifetime of the old one: a token issued for 90 days is replaced by one that
expires 90 days from now, one that never expires by one that never does. The old token stays valid for the overlap, or until
it expires anyway; --overlap 0s ends it at once. A token can be rotated once; then rotate the new one.`

export function rotateCommand(): Command {
  return new Command('rotate')
    .description('Replace a token by a new one; both are valid for a while.')
    .argument('<token>', 'its name, its id or the whole token')
    .addOption(
      new Option('--overlap <duration>', 'time that the old token stays valid, such as 24h, 30m or 0s')
        .argParser(parseDuration)
        .default(86_400_000, '24h'),
    )
    .addOption(databaseOption())
    .option('--json', 'as JSON')
    .addHelpText('after', help)
    .action((text: string, options: Options) =>
      withTokens(options, async (tokens, { sql }) => {
        const former = await findToken(tokens, text)
        const { overlap: overlapMs, json } = options
        const rotated = await rotateToken(sql, former, { overlapMs, now: Date.now() })
        const { id, token, expiresAt, formerExpiresAt } = rotated
        const replacedExpires = formatTime(formerExpiresAt)
        const { id: replaces, name, scopes } = former
        const made = { id, name, scopes, expires: formatTime(expiresAt), token }
        printResult({ ...made, replaces, replacedExpires }, token, json)
        if (!json) console.error(`${id} takes the place of ${replaces}, which ends at ${replacedExpires}`)
      }),
    )
}
