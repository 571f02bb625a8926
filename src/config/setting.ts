// A setting: its names, its default, and how its text is read.

/** Reads a text; `name`: the variable or flag, for errors. Throws ConfigError. `choices`: the words that are allowed. */
export type Read<T> = { (text: string, name: string): T; readonly choices?: string[] | undefined }

export type About = {
  /** For the flag; a setting without one has none. */
  readonly description?: string
  /** The text that is read when nothing is set; in parentheses: what an empty text means. */
  readonly default: string
  /** Masks a secret text. */
  readonly mask?: (text: string) => string
  /** True when the variable with `_FILE` behind its name may name a file that holds the text. */
  readonly hasFile?: boolean
}

export type Setting<T> = Required<About> & {
  /** The environment variable. */
  readonly name: string
  /** The flag of `serve`: --port for PORT. */
  readonly flag: string | undefined
  /** Placeholder of the flag's value. */
  readonly value: string | undefined
  /** Behaviour when nothing is set. */
  readonly defaultLabel: string
  readonly read: Read<T>
}

/** Makes a setting. `title`: the variable, and the placeholder of its flag's value, if it has a flag. */
export function setting<T>(title: string, read: Read<T>, about: About): Setting<T> {
  const [name = '', value] = title.split(' ')
  const flag = value && `--${name.toLowerCase().replaceAll('_', '-')}`
  const label = /^\((.*)\)$/.exec(about.default)?.[1]
  const own = { default: label === undefined ? about.default : '', defaultLabel: label ?? about.default }
  return { description: '', mask: String, hasFile: false, ...about, ...own, name, flag, value, read }
}
