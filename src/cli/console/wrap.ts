// Wraps help to 80 columns.
import { Help, type HelpConfiguration } from 'commander'

const width = 80
/** Columns for the names of options: the description of a longer one begins on the next line. */
const termColumns = 28
const help = new Help()

/** Wraps paragraphs; indented lines stay as they are. */
export function wrapProse(text: string): string {
  return text.replace(/^(?! )[^\n]+(?:\n(?! )[^\n]+)*/gm, (paragraph) =>
    help.boxWrap(paragraph.replaceAll('\n', ' '), width),
  )
}

/** Lists of options and commands in two columns. */
export const columns: HelpConfiguration = {
  formatItem(term, _width, description) {
    const margin = ' '.repeat(termColumns + 4)
    const about = help.boxWrap(description, width - margin.length).replaceAll('\n', `\n${margin}`)
    const isLong = term.length > termColumns
    return isLong ? `  ${term}\n${margin}${about}` : `  ${term}`.padEnd(margin.length) + about
  },
}
