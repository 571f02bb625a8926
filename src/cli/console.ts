// What commands print: results on stdout, as text or JSON; everything else on stderr.
import type { WorkOptions } from './options.ts'

/** A command failed; the message is one line for the person who ran it. The exit code is 1. */
export class CommandError extends Error {}

/** A number with its noun, such as `1 plant` or `1,234 plants`. Commands accept log positions only without commas. */
export function count(number: number, noun: string): string {
  return `${separate(number)} ${noun}${number === 1 ? '' : 's'}`
}

/** A number such as `1,234`. */
export function separate(number: number): string {
  return number.toLocaleString('en-US')
}

/** Prints the result of a command, as text or with --json. Rejects if it cannot be written. */
export function printResult(json: unknown, text: string, asJson: boolean | undefined): Promise<void> {
  const line = `${asJson ? JSON.stringify(json, null, 2) : text}\n`
  return new Promise((resolve, reject) => {
    process.stdout.write(line, (error) => (error ? reject(error) : resolve()))
  })
}

/** Prints the result of a command that writes a file: to stdout, or to stderr if the file itself goes to stdout (`-`). */
export async function reportFile(file: string | undefined, facts: object, text: string, flags: WorkOptions) {
  if (file !== '-') await printResult(facts, text, flags.json)
  else if (!flags.quiet) console.error(flags.json ? JSON.stringify(facts) : text)
}

/**
 * Keeps errors of stdout from ending the process. Returns a function that gives the exit code for such an error: 0 if the
 * reader closed stdout (`| head -1`), 1 otherwise; undefined for any other error.
 */
export function watchOutput(): (error: unknown) => number | undefined {
  const faults = new Set<unknown>()
  // Ignore a closed stderr: the exit code still shows whether the command failed.
  process.stderr.on('error', () => {})
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    faults.add(error)
    // Each further write fails like the first.
    if (error.code === 'EPIPE' || faults.size > 1) return
    process.exitCode = 1
    console.error(`plant-store: cannot write to stdout: ${error.message}`)
  })
  return (error) =>
    faults.has(error) ? Number((error as NodeJS.ErrnoException).code !== 'EPIPE') : undefined
}

/** Formats rows as aligned columns below their headings, without trailing spaces. */
export function formatTable(head: string[], rows: string[][]): string {
  const table = [head, ...rows]
  const widths = head.map((_, column) => Math.max(...table.map((row) => String(row[column]).length)))
  const formatRow = (row: string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return table.map((row) => formatRow(row).trimEnd()).join('\n')
}
