// Completion for fish: sourced, or as plant-store.fish in ~/.config/fish/completions.
import type { Choice, CompletionPoint, Values } from './completion-points.ts'

export function formatFish(points: CompletionPoint[]): string {
  const paths = points.slice(1).map(({ path }) => path)
  return `# Completion for plant-store in fish: plant-store completion fish | source
function __plant_store_at
  set -l at ''
  for word in (commandline -opc)[2..]
    contains -- "$at/$word" ${paths.join(' ')}; and set at "$at/$word"
  end
  test "$at" = "$argv[1]"
end
complete -c plant-store -f
${points.flatMap(formatPoint).join('\n')}
`
}

function formatPoint({ path, commands, options, values }: CompletionPoint): string[] {
  const line = (rest: string) => `complete -c plant-store -n '__plant_store_at "${path}"' ${rest}`
  return [
    ...commands.map(({ name, description }) => line(`-a ${name} -d ${quote(description)}`)),
    ...options.map((option) => line(formatOption(option))),
    ...(values && values !== 'unknown' ? [line(formatReply(values))] : []),
  ]
}

function formatOption({ names, description, values }: Choice): string {
  const flags = names.map((name) => (name.startsWith('--') ? `-l ${name.slice(2)}` : `-s ${name.slice(1)}`))
  return [...flags, ...(values ? ['-r', formatReply(values)] : []), '-d', quote(description)].join(' ')
}

function formatReply(values: Values): string {
  if (values === 'file') return '-F'
  return values === 'unknown' ? '-f' : `-f -a ${quote(values.words.join(' '))}`
}

function quote(text: string): string {
  return `'${text.replaceAll('\\', '\\\\').replaceAll("'", "\\'")}'`
}
