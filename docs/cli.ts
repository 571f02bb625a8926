// npm run cli-docs: writes the part of cli.md that is made from the commands' own definitions.
import type { EventEmitter } from 'node:events'
import { readFileSync, writeFileSync } from 'node:fs'
import type { Argument, Command, Option } from 'commander'
import { buildProgram } from '../src/cli/program.ts'
import { settingRows } from '../src/settings.ts'

const file = new URL('cli.md', import.meta.url)
const [start, end] = ['<!-- Made by npm run cli-docs from here … -->', '<!-- … to here. -->']

/** The page as it is to be: what is written by hand stays as it is. */
export async function makePage(): Promise<string> {
  const page = readFileSync(file, 'utf8')
  const [from, to] = [page.indexOf(start) + start.length, page.indexOf(end)]
  const sections = listCommands(await buildProgram()).map(describe)
  return `${page.slice(0, from)}\n\n${sections.join('\n')}\n${page.slice(to)}`
}

/** All commands that do something: `token create`, but not `token`. */
function listCommands(command: Command): Command[] {
  const children = command.commands.filter((child) => child.name() !== 'help')
  return children.length > 0 ? children.flatMap(listCommands) : [command]
}

function describe(command: Command): string {
  const help = command.createHelp()
  const options = help.visibleOptions(command).filter(({ long }) => long !== '--help')
  // The settings stand once.
  const repeated = command.name() === 'config' ? settingRows.filter(({ flag }) => flag).length : 0
  const rows = [
    ...command.registeredArguments.map((one) => [`\`${one.name()}\``, describeTerm(one)]),
    ...options.slice(0, options.length - repeated).map((one) => [`\`${one.flags}\``, describeTerm(one)]),
    ...(repeated > 0 ? [['all others', 'those of [serve](#plant-store-serve)']] : []),
  ]
  const table = rows.map(([term, text]) => `| ${term} | ${text?.replaceAll('|', '\\|')} |\n`).join('')
  const parts = [
    `### ${readName(command)}`,
    command.description(),
    `\`\`\`sh\n${help.commandUsage(command)}\n\`\`\``,
    `| Argument or option | Meaning |\n| --- | --- |\n${table.trimEnd()}`,
    ...readAfter(command),
  ]
  return `${parts.join('\n\n')}\n`
}

/** With the names of its parents. */
function readName(command: Command): string {
  return command.parent ? `${readName(command.parent)} ${command.name()}` : command.name()
}

function describeTerm({
  description,
  argChoices,
  defaultValue,
  defaultValueDescription,
}: Argument | Option): string {
  const more = [
    ...(argChoices ? [`one of ${argChoices.map((choice) => `\`${choice}\``).join(', ')}`] : []),
    // What --no-x turns off is on.
    ...(defaultValue === undefined || defaultValue === true
      ? []
      : [`default: \`${defaultValueDescription ?? defaultValue}\``]),
  ]
  return more.length > 0 ? `${description} (${more.join('; ')})` : description
}

/** The paragraphs that --help shows below the options; what is indented there stays in lines. */
function readAfter(command: Command): string[] {
  let text = ''
  const context = { error: false, command, write: (more: string) => (text += more) }
  // Its types leave out that a command is an emitter, which is how it gets these texts itself.
  ;(command as unknown as EventEmitter).emit('afterHelp', context)
  return text
    .replaceAll(/^\n+|\s+$/g, '')
    .split('\n\n')
    .filter((paragraph) => paragraph !== '')
    .map((paragraph) =>
      /^ {2}/m.test(paragraph) ? `\`\`\`text\n${paragraph.replaceAll(/^ {2}/gm, '')}\n\`\`\`` : paragraph,
    )
}

/* c8 ignore next: the tests compare, they do not write */
if (import.meta.main) writeFileSync(file, await makePage())
