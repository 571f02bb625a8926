// Tables of aligned columns, wide letters (East Asian, emoji) included; without rules and colours.

const gap = '  '
const graphemes = new Intl.Segmenter()
/** Letters that take two columns in a terminal (UAX 11, Wide and Fullwidth). */
const wide =
  /[[\p{Emoji_Presentation}\p{sc=Han}\p{sc=Hiragana}\p{sc=Katakana}\p{sc=Hangul}\p{sc=Bopomofo}\p{sc=Yi}\u3000-\u303E\uFF01-\uFFE6]--[\uFF61-\uFFDF]]/v

/** The head and the rows as lines, without spaces at their ends. */
export function formatTable(head: string[], rows: string[][]): string {
  const table = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...table.map((row) => measure(row[column] as string))))
  const pad = (cell: string, column: number) => cell + ' '.repeat((widths[column] as number) - measure(cell))
  return table.map((row) => row.map(pad).join(gap).trimEnd()).join('\n')
}

function measure(text: string): number {
  return [...graphemes.segment(text)].reduce((width, { segment }) => width + (wide.test(segment) ? 2 : 1), 0)
}
