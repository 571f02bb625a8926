// token explain: prints why the service refuses a JWT.
import { text } from 'node:stream/consumers'
import type { Command } from 'commander'
import pino from 'pino'
import { CommandError, printResult } from '../../cli/console.ts'
import { loadSettings } from '../../settings.ts'
import { readTokenId } from '../../tokens/format.ts'
import { issuerOf } from '../../tokens/issuer.ts'
import { command as program } from '../../version.ts'

const help = `
Reads a JWT from stdin, and prints why the service refuses it with the current settings (OIDC_…), or which scopes it grants.
The token is not shown. The keys of the issuer are fetched.`

export function defineExplain(command: Command): void {
  command
    .description('Explain why a JWT of OIDC_ISSUER is refused.')
    .option('--json', 'print the verdict as JSON')
    .addHelpText('after', help)
    .action(async ({ json }: { json?: true }) => {
      const issuer = issuerOf(loadSettings().settings)
      if (issuer === undefined) throw new CommandError('OIDC_ISSUER is not set: there is no issuer')
      // Loaded on demand, because its library takes time to load.
      const { explainToken } = await import('../../tokens/issued-tokens.ts')
      const token = (await text(process.stdin)).trim()
      if (readTokenId(token) !== undefined)
        throw new CommandError(`this is a token of the store, not a JWT; see ${program} token list`)
      const verdict = await explainToken(token, issuer, pino({ level: 'warn' }, pino.destination(2)))
      if (!('reason' in verdict)) {
        const scopes = [...verdict.scopes]
        const allowed = scopes.join(' and ') || 'nothing: it names no scope of the store'
        return printResult({ reason: null, detail: null, scopes }, `valid; it grants ${allowed}`, json)
      }
      process.exitCode = 1
      const { reason, detail } = verdict
      await printResult({ reason, detail, scopes: [] }, `refused (${reason}): ${detail}`, json)
    })
}
