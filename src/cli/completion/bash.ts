// Completion for bash 3.2 and newer: a script that starts neither the program nor another script when Tab is pressed.
import type { CompletionPoint, Values } from './completion-points.ts'

export function formatBash(points: CompletionPoint[]): string {
  const paths = points.slice(1).map(({ path }) => path)
  return `# Completion for plant-store in bash: source <(plant-store completion bash)
_plant_store() {
  local line=\${COMP_LINE:0:COMP_POINT} words=() word current before at='' kind=none reply=''
  read -ra words <<<"$line"
  [[ $line == *[[:space:]] ]] && words+=('')
  current=\${words[\${#words[@]} - 1]}
  before=\${words[\${#words[@]} - 2]}
  for word in "\${words[@]:1:\${#words[@]} - 2}"; do
    case "$at/$word" in ${paths.join('|')}) at="$at/$word" ;; esac
  done
  local prefix=''
  if [[ $current == --*=* ]]; then
    before=\${current%%=*} prefix="$before="
  fi
  case "$at $before" in
${points.flatMap(formatValues).join('\n')}
    *) case "$at" in
${points.map(formatPoint).join('\n')}
      esac ;;
  esac
  if [[ $kind == file ]]; then
    # With nothing in it bash completes file names by itself, and quotes them.
    COMPREPLY=()
    return
  fi
  compopt +o default 2>/dev/null
  COMPREPLY=($(compgen -P "$prefix" -W "$reply" -- "\${current#"$prefix"}"))
  # bash replaces only what follows the last word break; : and = are usually word breaks.
  local start="\${current%"\${current##*[:=]}"}"
  [[ -n $start && $COMP_WORDBREAKS == *[:=]* ]] && COMPREPLY=("\${COMPREPLY[@]#"$start"}")
}
complete -o default -F _plant_store plant-store
`
}

/** The branches for the options of a point that take a value. */
function formatValues({ path, options }: CompletionPoint): string[] {
  return options
    .filter(({ values }) => values !== undefined)
    .map(({ names, values }) => {
      const patterns = names.map((name) => `'${path} ${name}'`).join('|')
      return `    ${patterns}) ${formatReply(values as Values)} ;;`
    })
}

function formatPoint({ path, commands, options, values }: CompletionPoint): string {
  const names = options.flatMap((option) => option.names).join(' ')
  const others = commands.length > 0 ? { words: commands.map(({ name }) => name) } : (values ?? 'unknown')
  return `      '${path}') if [[ $current == -* ]]; then reply='${names}'; else ${formatReply(others)}; fi ;;`
}

function formatReply(values: Values): string {
  if (values === 'file') return 'kind=file'
  return `reply='${values === 'unknown' ? '' : values.words.join(' ')}'`
}
