// A setting: its names, its default, and how its text is read.

/** Reads a text. `choices`: the words that are allowed, where only words are. */
export type Read<T> = { (text: string, name: string): T; readonly choices?: string[] | undefined }

export type Setting<T> = {
  /** The environment variable. The flag is the same in kebab case. */
  readonly name: string
  /** Placeholder of the flag's value. */
  readonly value: string
  readonly description: string
  /** The text that is read when nothing is set. */
  readonly default: string
  /** Behaviour when nothing is set, where `default` does not say it. */
  readonly defaultLabel?: string
  /** Reads `default` or the text that was set; `name`: the variable or flag, for errors. Throws ConfigError. */
  readonly read: Read<T>
  /** Masks a secret text. */
  mask?(text: string): string
}

export const setting = <T>(one: Setting<T>): Setting<T> => one
