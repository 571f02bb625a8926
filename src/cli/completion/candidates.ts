// Lists what the last word of a command line can become, from the commands' own definitions.
import type { Command } from 'commander'

/** `description` is empty for a value. */
export type Candidate = { name: string; description: string }
/** `file`: the name of any file. */
export type Candidates = Candidate[] | 'file'

/** Candidates for the last of the words, of which there is at least one, that follow the name of the program. */
export function listCandidates(program: Command, words: string[]): Candidates {
  const command = words.slice(0, -1).reduce(enter, program)
  const current = words.at(-1) as string
  const [, start = '', name = words.at(-2), value = current] = /^((--[^=]+)=)(.*)$/s.exec(current) ?? []
  const options = command.createHelp().visibleOptions(command)
  const option = options.find(({ short, long, required }) => required && [short, long].includes(name))
  let found: Candidates
  if (option) found = listValues(option.argChoices, option.flags.endsWith('<file>'))
  else if (current.startsWith('-'))
    found = options.flatMap(({ short, long, description }) =>
      [short, long].flatMap((one) => (one === undefined ? [] : { name: one, description })),
    )
  else found = listOperands(command)
  if (found === 'file') return found
  return found.filter((one) => one.name.startsWith(value)).map((one) => ({ ...one, name: start + one.name }))
}

/** The command that a word leads to from another one, which any word but the name of a command leaves as it is. */
function enter(command: Command, word: string): Command {
  return command.commands.find((child) => child.name() === word) ?? command
}

function listOperands(command: Command): Candidates {
  const commands = command.createHelp().visibleCommands(command)
  if (commands.length > 0)
    return commands.map((child) => ({ name: child.name(), description: child.description() }))
  // What follows a first argument cannot be told.
  const [argument] = command.registeredArguments
  return argument ? listValues(argument.argChoices, argument.name() === 'file') : []
}

function listValues(choices: readonly string[] = [], takesFile: boolean): Candidates {
  return takesFile ? 'file' : choices.map((name) => ({ name, description: '' }))
}
