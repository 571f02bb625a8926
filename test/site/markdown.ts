// The code blocks of a Markdown document, in order.

/** `heading`: the latest before the block. `start`: where its text begins in the document. */
export type CodeBlock = { language: string; text: string; heading: string; start: number }

/** Finds the fenced blocks. Throws if one names no language. */
export function findCodeBlocks(markdown: string): CodeBlock[] {
  const blocks: CodeBlock[] = []
  let heading = ''
  for (const match of markdown.matchAll(/^(?:#+ (.+)|```(.*)\n([\s\S]*?)^```$)/gm)) {
    const [whole, title, language, text = ''] = match
    if (title !== undefined) heading = title
    else if (!language) throw new Error(`a block under "${heading}" names no language`)
    else blocks.push({ language, text, heading, start: match.index + whole.indexOf('\n') + 1 })
  }
  return blocks
}
