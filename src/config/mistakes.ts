// What is no fault, and hardly meant: a misspelt setting, a token that can be guessed, a secret in a flag. A line for each; values are not
// repeated, since they may be secrets.
import { closest, distance } from 'fastest-levenshtein'
import type { Flags } from './config.ts'
import { flagOf, settingEntries } from './settings.ts'

const minTokenLength = 16
const known = new Set(settingEntries.map(([, { name }]) => name))

/** The variables that look like one of `names` and are none. */
export function findMisspelt(env: NodeJS.ProcessEnv, names: string[]): string[] {
  return Object.keys(env).flatMap((variable) => {
    const nearest = closest(variable.toUpperCase(), names)
    const isNear = distance(variable.toUpperCase(), nearest) <= tolerance(nearest)
    return isNear && !known.has(variable) ? [`${variable} is not a setting; did you mean ${nearest}?`] : []
  })
}

/** The environment has many names that are none of ours: HOME is not far from HOST. */
function tolerance(name: string): number {
  return name.length < 6 ? 1 : 2
}

export function findShortTokens(tokens: string[]): string[] {
  return tokens.flatMap((token, index) =>
    token.length < minTokenLength
      ? [`ACCESS_TOKENS: token ${index + 1} has fewer than ${minTokenLength} characters and may be guessed`]
      : [],
  )
}

/** The flags with a secret: `ps` shows the arguments of a command to every user of the machine. */
export function findBareSecrets(flags: Flags): string[] {
  return settingEntries.flatMap(([key, setting]) => {
    const { [key]: text = '' } = flags
    const isBare = setting.mask !== undefined && setting.mask(text) !== text
    return isBare
      ? [
          `every user of this machine can see the secret in ${flagOf(setting)}; put ${setting.name} into the environment or .env`,
        ]
      : []
  })
}
