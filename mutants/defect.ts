// What a deliberate defect is: one edit of the source, and the test that has to fail because of it.

/** A test file, or of it the tests whose titles hold these texts: the first at the top level, the next below it. */
export type Check = { file: string; titles?: string[] }

export type Defect = {
  /** What goes wrong, in words. */
  breaks: string
  file: string
  /** Occurs exactly once in the file. */
  search: string
  replacement: string
  /** Quick ones that are likely to see it; one failure is enough. */
  checks: Check[]
}

/** `file`: a path in test/, without its ending. `titles`: see `Check`. */
export function inTest(file: string, ...titles: string[]): Check {
  return { file: `test/${file}.test.ts`, ...(titles.length > 0 && { titles }) }
}

/** Puts a defect into the text of its file. Throws when the text to replace is not there, or is there twice. */
export function applyDefect({ file, search, replacement }: Defect, text: string): string {
  const places = text.split(search).length - 1
  if (places !== 1) throw new Error(`${file} has ${places} places for the defect, expected one: ${search}`)
  return text.replace(search, () => replacement)
}
