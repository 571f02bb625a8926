// Warnings for valid but suspicious settings: a token that can be guessed, a secret in a flag. Values are not repeated,
// since they may be secrets.
import { type Flags, settingEntries } from './settings.ts'

const minTokenLength = 16

/** Finds tokens that can be guessed, and the audience `account`, which Keycloak puts into the tokens of every client. */
export function findWeakSettings(config: { accessTokens: string[]; oidcAudience: string[] }): string[] {
  const short = `has fewer than ${minTokenLength} characters and may be guessed`
  const warnings = config.accessTokens.flatMap(({ length }, index) =>
    length < minTokenLength ? [`ACCESS_TOKENS: token ${index + 1} ${short}`] : [],
  )
  if (config.oidcAudience.includes('account'))
    warnings.push('OIDC_AUDIENCE: account is in tokens that were issued for other services, too')
  return warnings
}

/** Finds flags that hold a secret: `ps` shows the arguments of a command to every user of the machine. */
export function findBareSecrets(flags: Flags): string[] {
  return settingEntries
    .filter(([key, { mask }]) => mask(flags[key] ?? '') !== (flags[key] ?? ''))
    .map(
      ([, { flag, name }]) =>
        `every user of this machine can see the secret in ${flag}; put ${name} into the environment or .env`,
    )
}
