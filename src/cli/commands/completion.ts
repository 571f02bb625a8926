// completion: a script that completes commands, options, formats and files in a shell, and the answers that it asks the
// program for.
import { Argument, type Command } from 'commander'

/** What a word can become; `description` is empty for a value. */
type Candidate = { name: string; description: string }

/** `script`: calls `plant-store completion SHELL -- WORDS` when Tab is pressed; `format`: a line of the answer. */
type Shell = { script: string; format(candidate: Candidate): string }

/** The answer where the shell completes names of files. */
const fileAnswer = '<file>'

/** For bash 3.2 and newer. */
const bash = `# Completion for plant-store in bash: source <(plant-store completion bash)
_plant_store() {
  local line=\${COMP_LINE:0:COMP_POINT} words=() found current IFS=$' \\t\\n'
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  found=$(command plant-store completion bash -- "\${words[@]:1}" 2>/dev/null)
  COMPREPLY=()
  # With nothing in it bash completes file names by itself, and quotes them.
  [[ $found == '${fileAnswer}' ]] && return
  compopt +o default 2>/dev/null
  IFS=$'\\n'
  COMPREPLY=($found)
  # bash replaces only what follows the last word break; : and = are usually word breaks.
  current=\${words[\${#words[@]} - 1]}
  [[ $COMP_WORDBREAKS == *[:=]* ]] && COMPREPLY=("\${COMPREPLY[@]#"\${current%"\${current##*[:=]}"}"}")
}
complete -o default -F _plant_store plant-store
`

/** Sourced after compinit, or as _plant-store in a directory of $fpath. */
const zsh = `#compdef plant-store
# Completion for plant-store in zsh: source <(plant-store completion zsh), after compinit
_plant-store() {
  local -a found
  found=("\${(@f)$(command plant-store completion zsh -- "\${(@Q)words[2,CURRENT-1]}" "$PREFIX" 2>/dev/null)}")
  if [[ $found == '${fileAnswer}' ]]; then
    compset -P '--*='
    _files
  else
    _describe value found
  fi
}
if [[ $funcstack[1] == _plant-store ]]; then _plant-store "$@"; else compdef _plant-store plant-store; fi
`

/** Sourced, or as plant-store.fish in ~/.config/fish/completions. */
const fish = `# Completion for plant-store in fish: plant-store completion fish | source
function __plant_store
  set -l words (commandline -opc) "$(commandline -ct)"
  set -l found (command plant-store completion fish -- $words[2..] 2>/dev/null)
  if test "$found" = '${fileAnswer}'
    set -l option (string match -r '^--[^=]*=' -- $words[-1])
    for path in (__fish_complete_path (string replace -r '^--[^=]*=' '' -- $words[-1]))
      echo "$option$path"
    end
  else
    printf '%s\\n' $found
  end
end
complete -c plant-store -f -a '(__plant_store)'
`

const shells: Record<string, Shell> = {
  bash: { script: bash, format: ({ name }) => name },
  zsh: { script: zsh, format: ({ name, description }) => `${name.replaceAll(':', '\\:')}:${description}` },
  fish: { script: fish, format: ({ name, description }) => `${name}\t${description}` },
}

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
