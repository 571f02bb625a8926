// completion: a script that completes commands, options, formats and files in a shell.
import { Argument, Command } from 'commander'
import { formatBash } from '../completion/bash.ts'
import { listPoints } from '../completion/completion-points.ts'
import { formatFish } from '../completion/fish.ts'
import { formatZsh } from '../completion/zsh.ts'

const shells = { bash: formatBash, zsh: formatZsh, fish: formatFish }

const help = `
  bash   source <(plant-store completion bash)       in ~/.bashrc
  zsh    source <(plant-store completion zsh)        in ~/.zshrc, after compinit
  fish   plant-store completion fish | source      in ~/.config/fish/config.fish`

/** `buildProgram` builds the program with all its commands. */
export function makeCommand(buildProgram: () => Promise<Command>): Command {
  return new Command('completion')
    .addArgument(new Argument('<shell>', 'the shell').choices(Object.keys(shells)))
    .addHelpText('after', help)
    .action(async (shell: keyof typeof shells) => {
      process.stdout.write(shells[shell](listPoints(await buildProgram())))
    })
}
