// Completion in shells: scripts that ask the program itself what the word before the cursor can become.

/** What a word can become; `description` is empty for a value. */
export type Candidate = { name: string; description: string }

/** `script`: calls `plant-store completion SHELL -- WORDS` when Tab is pressed; `format`: a line of the answer. */
export type Shell = { script: string; format(candidate: Candidate): string }

/** The answer where the shell completes names of files. */
export const fileAnswer = '<file>'

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

export const shells: Record<string, Shell> = {
  bash: { script: bash, format: ({ name }) => name },
  zsh: { script: zsh, format: ({ name, description }) => `${name.replaceAll(':', '\\:')}:${description}` },
  fish: { script: fish, format: ({ name, description }) => `${name}\t${description}` },
}
