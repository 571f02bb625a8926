// A setting: its names, its default, and how its text is read.

/** Reads a text; `name`: the variable or flag, for errors. Throws ConfigError. `choices`: the words that are allowed. */
export type Read<T> = { (text: string, name: string): T; readonly choices?: string[] | undefined }

export type About = {
  readonly description: string
  /** The text that is read when nothing is set; in parentheses: what an empty text means. */
  readonly default: string
  /** Masks a secret text. */
  readonly mask?: (text: string) => string
}

export type Setting<T> = Required<About> & {
  /** The environment variable. */
  readonly name: string
  /** The flag of `serve`: --port for PORT. */
  readonly flag: string
  /** Placeholder of the flag's value. */
  readonly value: string
  /** Behaviour when nothing is set. */
  readonly defaultLabel: string
  readonly read: Read<T>
}

/** Makes a setting. `title`: the variable, and the placeholder of its flag's value. */
export function setting<T>(title: string, read: Read<T>, about: About): Setting<T> {
  const [name = '', value = ''] = title.split(' ')
  const flag = `--${name.toLowerCase().replaceAll('_', '-')}`
  const label = /^\((.*)\)$/.exec(about.default)?.[1]
  const preset = label === undefined ? about.default : ''
  const defaultLabel = label ?? about.default
  return { mask: String, ...about, default: preset, defaultLabel, name, flag, value, read }
}
