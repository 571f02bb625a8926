// Warnings for valid but suspicious settings: a misspelt name, a token that can be guessed, a secret in a flag. Values
// are not repeated, since they may be secrets.
import { type Flags, settingEntries } from './settings.ts'

const minTokenLength = 16
/** Variables of OpenTelemetry for signals that the service does not send. */
const others = /^OTEL_(BLRP|LOGS|METRICS?)_/
const known = settingEntries.map(([, { name }]) => name)

/** Finds variables that are close to one of `names` without being a setting. */
export function findMisspelt(variables: NodeJS.ProcessEnv, names = known): string[] {
  const isForeign = (variable: string) => !known.includes(variable) && !others.test(variable)
  return Object.keys(variables)
    .filter(isForeign)
    .flatMap((variable) => {
      const nearest = findNearest(variable.toUpperCase(), names)
      return nearest === undefined ? [] : [`${variable} is not a setting; did you mean ${nearest}?`]
    })
}

function findNearest(variable: string, names: string[]): string | undefined {
  // Foreign variables may be close to short names of ours: HOME is to HOST.
  const tolerated = (name: string) => (name.length < 6 ? 1 : 2)
  const isNear = (name: string, edits: number) => edits <= tolerated(name) && isWithin(edits, variable, name)
  return [0, 1, 2].flatMap((edits) => names.filter((name) => isNear(name, edits)))[0]
}

/**
 * True when at most so many edits (insertion, deletion, substitution, transposition of neighbours) turn one text into
 * the other (optimal string alignment distance).
 */
function isWithin(edits: number, one: string, other: string): boolean {
  let same = 0
  while (same < one.length && one[same] === other[same]) same++
  const [a, b] = [one.slice(same), other.slice(same)]
  if (edits === 0 || a === b) return a === b
  const isSwapped = a[0] === b[1] && a[1] === b[0]
  return (
    isWithin(edits - 1, a.slice(1), b) ||
    isWithin(edits - 1, a, b.slice(1)) ||
    isWithin(edits - 1, a.slice(1), b.slice(1)) ||
    (isSwapped && isWithin(edits - 1, a.slice(2), b.slice(2)))
  )
}

export function findShortTokens(tokens: string[]): string[] {
  return tokens.flatMap((token, index) =>
    token.length < minTokenLength
      ? [`ACCESS_TOKENS: token ${index + 1} has fewer than ${minTokenLength} characters and may be guessed`]
      : [],
  )
}

/** Warns of the audience `account`, which Keycloak puts into the tokens of every client. */
export function findBroadAudiences(audiences: string[]): string[] {
  const isBroad = audiences.includes('account')
  return isBroad ? ['OIDC_AUDIENCE: account is in tokens that were issued for other services, too'] : []
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
