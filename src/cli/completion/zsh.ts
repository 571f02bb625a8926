// Completion for zsh: sourced after compinit, or as _plant-store in a directory of $fpath.
import type { Choice, CompletionPoint, Values } from './completion-points.ts'

export function formatZsh(points: CompletionPoint[]): string {
  const paths = points.slice(1).map(({ path }) => path)
  return `#compdef plant-store
# Completion for plant-store in zsh: source <(plant-store completion zsh), after compinit
_plant-store() {
  local word at='' before=\${words[CURRENT-1]}
  local -a commands options
  for word in \${words[2,CURRENT-1]}; do
    case "$at/$word" in (${paths.join('|')}) at="$at/$word" ;; esac
  done
  if [[ $PREFIX == --*=* ]]; then
    before=\${PREFIX%%=*}
    compset -P '*='
  fi
  case "$at $before" in
${points.flatMap(formatValues).join('\n')}
    (*) case "$at" in
${points.map(formatPoint).join('\n')}
      esac ;;
  esac
}
if [[ $funcstack[1] == _plant-store ]]; then _plant-store "$@"; else compdef _plant-store plant-store; fi
`
}

function formatValues({ path, options }: CompletionPoint): string[] {
  return options
    .filter(({ values }) => values !== undefined)
    .map(({ names, values }) => {
      const patterns = names.map((name) => `'${path} ${name}'`).join('|')
      return `    (${patterns}) ${formatReply(values as Values)} ;;`
    })
}

function formatPoint({ path, commands, options, values }: CompletionPoint): string {
  const list = options.flatMap(describe).join(' ')
  const others =
    commands.length > 0
      ? `commands=(${commands.map(({ name, description }) => quote(name, description)).join(' ')}); _describe command commands`
      : formatReply(values ?? 'unknown')
  return `      ('${path}') if [[ $PREFIX == -* ]]; then
        options=(${list}); _describe -o option options
      else
        ${others}
      fi ;;`
}

function formatReply(values: Values): string {
  if (values === 'file') return '_files'
  return values === 'unknown' ? '_message value' : `compadd -- ${values.words.join(' ')}`
}

function describe({ names, description }: Choice): string[] {
  return names.map((name) => quote(name, description))
}

/** A name and what it does, as _describe reads them. */
function quote(name: string, description: string): string {
  return `'${name.replaceAll(':', '\\:')}:${description.replaceAll("'", "'\\''")}'`
}
