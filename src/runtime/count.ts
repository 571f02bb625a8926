// Formats numbers for people, with separators and nouns. Positions of the log stay plain, for use in commands.

/** A number with its noun, such as `1 plant` or `1,234 plants`. */
export function count(number: number, noun: string): string {
  return `${separate(number)} ${noun}${number === 1 ? '' : 's'}`
}

/** A number such as `1,234`. */
export function separate(number: number): string {
  return number.toLocaleString('en-US')
}
