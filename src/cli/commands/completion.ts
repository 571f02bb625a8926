// completion: a script that completes commands, options, formats and files in a shell.
import { Argument, Command } from 'commander'
import { listCandidates } from '../completion/candidates.ts'
import { fileAnswer, type Shell, shells } from '../completion/shells.ts'

const help = `
  bash   source <(plant-store completion bash)       in ~/.bashrc
  zsh    source <(plant-store completion zsh)        in ~/.zshrc, after compinit
  fish   plant-store completion fish | source      in ~/.config/fish/config.fish`

/** `buildProgram` builds the program for the words of a command line. */
export function makeCommand(buildProgram: (words: string[]) => Promise<Command>): Command {
  return new Command('completion')
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
