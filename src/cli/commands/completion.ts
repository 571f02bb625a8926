// completion: a script that completes commands, options, formats and files in a shell, and the answers that it asks for.
import { Argument, type Command } from 'commander'
import { type Candidate, fileAnswer, type Shell, shells } from './completion/shells.ts'

const help = `
  bash   source <(plant-store completion bash)       in ~/.bashrc
  zsh    source <(plant-store completion zsh)        in ~/.zshrc, after compinit
  fish   plant-store completion fish | source      in ~/.config/fish/config.fish`

/** `buildProgram` builds the program for the words of a command line. */
export function define(command: Command, buildProgram: (words: string[]) => Promise<Command>): void {
  command
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(shells)))
    .argument('[words...]', 'a line that is half typed, after --: prints what its last word can become')
    .addHelpText('after', help)
    .action(async (shell: string, words: string[]) => {
      const { script, format } = shells[shell] as Shell
      if (words.length === 0) process.stdout.write(script)
      else {
        const found = listCandidates(await buildProgram(words), words)
        const lines = found === 'file' ? [fileAnswer] : found.map(format)
        process.stdout.write(lines.map((line) => `${line}\n`).join(''))
      }
    })
}

/** `file`: the name of any file. */
type Candidates = Candidate[] | 'file'

/** Lists what the last of the words can become; they follow the name of the program, and there is at least one. */
function listCandidates(program: Command, words: string[]): Candidates {
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
