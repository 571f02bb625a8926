// Lists what can be typed at each point of a command line, from the commands' own definitions.
import type { Argument, Command, Option } from 'commander'

/** Candidates for a value: a list of words, files, or none because only the user knows it. */
export type Values = { words: string[] } | 'file' | 'unknown'

/** `values` is undefined for an option that takes none. */
export type Choice = { names: string[]; description: string; values: Values | undefined }

/** A point after the words of a command: `path` is like `/token/create`, and empty before the first word. */
export type CompletionPoint = {
  path: string
  commands: { name: string; description: string }[]
  options: Choice[]
  /** Candidates for the arguments; undefined when the command takes none. */
  values: Values | undefined
}

/** All points of a program; the beginning comes first. */
export function listPoints(command: Command, path = ''): CompletionPoint[] {
  const help = command.createHelp()
  const commands = help.visibleCommands(command)
  // No command has more than one argument so far.
  const argument = command.registeredArguments.at(-1)
  const choices = commands.map((child) => ({ name: child.name(), description: child.description() }))
  const point = {
    path,
    commands: choices,
    options: help.visibleOptions(command).map(toChoice),
    values: argument && readValues(argument, argument.name()),
  }
  // `help` takes the names of commands.
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
  // Commander keeps the placeholder only within the flags.
  const [, value] = /[<[]([^\]>]+)/.exec(flags) ?? []
  return { names, description, values: value === undefined ? undefined : readValues(option, value) }
}

/** Candidates of an argument or option; one called `<file>` or `[file]` takes files. */
function readValues({ argChoices }: Pick<Argument | Option, 'argChoices'>, name: string): Values {
  if (argChoices) return { words: argChoices }
  return name === 'file' ? 'file' : 'unknown'
}
