// A setting: its names, its default, and how its text is read.

/** Reads a text; `name`: the variable or flag, for errors. Throws ConfigError. `choices`: the words that are allowed. */
export type Read<T> = { (text: string, name: string): T; readonly choices?: string[] | undefined }

export type Setting<T> = {
  /** The environment variable. */
  readonly name: string
  /** The flag of `serve`: --port for PORT. */
  readonly flag: string
  /** Placeholder of the flag's value. */
  readonly value: string
  readonly description: string
  /** The text that is read when nothing is set. */
  readonly default: string
  /** Behaviour when nothing is set. */
  readonly defaultLabel: string
  readonly read: Read<T>
  /** Masks a secret text. */
  readonly mask: (text: string) => string
}

/** `title`: the variable, and the placeholder of its flag's value; a `preset` in parentheses is a label, not a value. */
export type Row<T> = [
  title: string,
  description: string,
  preset: string,
  read: Read<T>,
  mask?: Setting<T>['mask'],
]

export function setting<T>(...[title, description, preset, read, mask = String]: Row<T>): Setting<T> {
  const [name = '', value = ''] = title.split(' ')
  const flag = `--${name.toLowerCase().replaceAll('_', '-')}`
  const label = /^\((.*)\)$/.exec(preset)?.[1]
  return {
    ...{ name, flag, value, description, read, mask },
    ...{ default: label === undefined ? preset : '', defaultLabel: label ?? preset },
  }
}
