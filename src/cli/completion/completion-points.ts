// What can be typed at each place of a command line, from the commands' own definitions.
import type { Argument, Command, Option } from 'commander'

/** What stands for a value: one of some words, a file, or something that only the user knows. */
export type Values = { words: string[] } | 'file' | 'unknown'

/** `values` is undefined for an option that takes none. */
export type Choice = { names: string[]; description: string; values: Values | undefined }

/** Where a command has been typed: its `path` is like `/token/create`, and empty at the beginning. */
export type CompletionPoint = {
  path: string
  commands: { name: string; description: string }[]
  options: Choice[]
  /** What the arguments are; undefined when there are none. */
  values: Values | undefined
}

/** All points of a program; the beginning comes first. */
export function listPoints(command: Command, path = ''): CompletionPoint[] {
  const help = command.createHelp()
  const commands = help.visibleCommands(command)
  // The last argument speaks for all: there is one at most so far.
  const argument = command.registeredArguments.at(-1)
  const choices = commands.map((child) => ({ name: child.name(), description: child.description() }))
  const point = {
    path,
    commands: choices,
    options: help.visibleOptions(command).map(toChoice),
    values: argument && readValues(argument, argument.name()),
  }
  // Behind help stand the commands again.
  const afterHelp = { path: `${path}/help`, commands: choices, options: [], values: undefined }
  return [
    point,
    ...commands.flatMap((child) =>
      child.name() === 'help' ? afterHelp : listPoints(child, `${path}/${child.name()}`),
    ),
  ]
}

function toChoice(option: Option): Choice {
  const { short, long, description, flags } = option
  const names = [short, long].filter((name) => name !== undefined)
  // Commander keeps what stands between the angle brackets nowhere else.
  const [, value] = /[<[]([^\]>]+)/.exec(flags) ?? []
  return { names, description, values: value === undefined ? undefined : readValues(option, value) }
}

/** Files are told by how they are called in the definitions: `<file>`, `[file]`. */
function readValues({ argChoices }: Pick<Argument | Option, 'argChoices'>, name: string): Values {
  if (argChoices) return { words: argChoices }
  return name === 'file' ? 'file' : 'unknown'
}
