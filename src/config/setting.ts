// One setting: what it is called, and how its text is read.

export type Setting<T> = {
  /** The environment variable. The flag is the same in kebab case. */
  readonly name: string
  /** Placeholder of the flag's value. */
  readonly value: string
  readonly about: string
  /** The text that is read when nothing is set. */
  readonly initial: string
  /** Behaviour when nothing is set, where `initial` does not say it. */
  readonly otherwise?: string
  /** Takes `initial` or what was set; `name`: how whoever set it called it. Throws ConfigError. */
  read(text: string, name: string): T
  /** Masks a secret text. */
  mask?(text: string): string
}

export const setting = <T>(one: Setting<T>): Setting<T> => one
