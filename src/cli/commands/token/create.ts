// token create: issues a token and prints it.
import { Command, InvalidArgumentError, Option } from 'commander'
import { hideTokens } from '../../../config/mask.ts'
import { readTokenId } from '../../../tokens/format.ts'
import { type Scope, scopes } from '../../../tokens/tokens.ts'
import { printResult } from '../../console/output.ts'
import { databaseOption } from '../../setting-options.ts'
import { formatTime, parseExpiry } from './duration.ts'
import { type TokenOptions, withTokens } from './with-tokens.ts'

type Options = TokenOptions & { name: string; scope?: Scope[]; expires?: number }

const maxNameLength = 100

export function createCommand(): Command {
  return new Command('create')
    .description('Issue a token and print it. It cannot be shown again.')
    .requiredOption(
      '--name <name>',
      'the purpose or owner of the token, unique among valid tokens',
      parseName,
    )
    .addOption(new Option('--scope <scope...>', 'scopes of the token (default: all)').choices(scopes))
    .option(
      '--expires <time>',
      'a duration such as 12h, 90d or 1y, or a date such as 2030-01-31: the end of that day (UTC)',
      parseExpiry,
    )
    .addOption(databaseOption())
    .option('--json', 'as JSON')
    .action((options: Options) =>
      withTokens(options, async (tokens) => {
        const { name, scope = scopes, expires = null, json } = options
        const allowed = [...new Set(scope)]
        const token = await tokens.create({ name, scopes: allowed, expiresAt: expires })
        const id = readTokenId(token)
        const ends = formatTime(expires)
        printResult({ id, name, scopes: allowed, expires: ends, token }, token, json)
        if (ends !== null && !json) console.error(`${id} expires at ${ends}`)
      }),
    )
}

function parseName(text: string): string {
  if (text.trim() === '' || [...text].length > maxNameLength || /\p{Cc}/u.test(text))
    throw new InvalidArgumentError(`Expected 1 to ${maxNameLength} characters, and no control characters.`)
  if (hideTokens(text) !== text)
    throw new InvalidArgumentError('A name is shown in lists: it holds no token.')
  return text
}
