// Output to stdout: results alone, as words or as JSON. The reader may stop at any moment (`| head -1`).

import { fstatSync } from 'node:fs'
import { isSameFile } from '../../runtime/same-file.ts'

/** Prints the result of a command; with --json for machines. */
export function printResult(json: unknown, text: string, asJson: boolean | undefined): void {
  process.stdout.write(`${asJson ? JSON.stringify(json, null, 2) : text}\n`)
}

/** Prints a result on stderr, in one line, for commands whose stdout holds data. */
export function warnResult(json: unknown, text: string, asJson: boolean | undefined): void {
  console.error(asJson ? JSON.stringify(json) : text)
}

/** True when stdout is a file other than stderr's: a pipe may end on the same terminal, and lines would mix there. */
export function isApart(): boolean {
  const [stdout, stderr] = [fstatSync(1), fstatSync(2)]
  return stdout.isFile() && !isSameFile(stdout, stderr)
}

/**
 * Keeps a closed stdout from ending a command that prints. A pipeline into stdout fails; the function that is returned
 * recognizes that failure by its code, and gives the exit code: 0 when the reader has closed stdout, 1 otherwise (disk
 * full, for instance), undefined for any other error. Other faults are reported at once. A closed stderr ends nothing
 * either: the exit code still tells.
 */
export function watchOutput(): (error: unknown) => number | undefined {
  let fault: NodeJS.ErrnoException | undefined
  process.stderr.on('error', () => {})
  // Each further write fails like the first.
  process.stdout.on('error', () => {})
  process.stdout.once('error', (error: NodeJS.ErrnoException) => {
    fault = error
    if (error.code === 'EPIPE') return
    process.exitCode = 1
    console.error(`plant-store: cannot write to stdout: ${error.message}`)
  })
  return (error) => {
    if (fault && (error as NodeJS.ErrnoException).code !== fault.code) return undefined
    return fault && (fault.code === 'EPIPE' ? 0 : 1)
  }
}
