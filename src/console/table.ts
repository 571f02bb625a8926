// Rows in columns that are as wide as they need to be, letters of East Asia and emoji included; no lines, no colours.
import Table from 'cli-table3'

const gap = 2
const lines = [
  'top',
  'top-mid',
  'top-left',
  'top-right',
  'bottom',
  'bottom-mid',
  'bottom-left',
  'bottom-right',
]
const more = ['left', 'left-mid', 'mid', 'mid-mid', 'right', 'right-mid', 'middle']
const chars = Object.fromEntries([...lines, ...more].map((name) => [name, '']))

/** The head and the rows as lines, without spaces at their ends. */
export function formatTable(head: string[], rows: string[][]): string {
  const style = { 'padding-left': 0, 'padding-right': gap, head: [], border: [] }
  const table = new Table({ head, chars, style })
  table.push(...rows)
  return table
    .toString()
    .split('\n')
    .map((line) => line.trimEnd())
    .join('\n')
}
