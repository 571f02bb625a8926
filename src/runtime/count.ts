// Numbers for people: with separators, and with their nouns.

/** A number with its noun, such as `1 plant` or `2 plants`. */
export function count(number: number, noun: string, format: (number: number) => string = String): string {
  return `${format(number)} ${noun}${number === 1 ? '' : 's'}`
}

/** A number such as `1,234`. */
export function separate(number: number): string {
  return number.toLocaleString('en-US')
}
