// Output to stdout: results alone, as words or as JSON. The reader may stop at any moment (`| head -1`).

import { fstatSync, readSync } from 'node:fs'
import { FileRefused } from '../../runtime/new-file.ts'
import { identify, isSameFile } from '../../runtime/same-file.ts'

/** Prints the result of a command; with --json for machines. What goes wrong is told by `watchOutput`. */
export function printResult(json: unknown, text: string, asJson: boolean | undefined): void {
  deliverResult(json, text, asJson).catch(() => {})
}

/** The same; rejects when the result was not written. */
export function deliverResult(json: unknown, text: string, asJson: boolean | undefined): Promise<void> {
  const line = `${asJson ? JSON.stringify(json, null, 2) : text}\n`
  return new Promise((resolve, reject) => {
    process.stdout.write(line, (error) => (error ? reject(error) : resolve()))
  })
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

/** Throws FileRefused when stdout was closed at the start, and Node opened /dev/null in its place, to read and write. */
export function requireStdout(): void {
  if (!isSameFile(fstatSync(1), identify('/dev/null'))) return
  try {
    readSync(1, Buffer.alloc(1))
  } catch {
    // It is for writing alone, as with `> /dev/null`.
    return
  }
  throw new FileRefused('stdout is closed: there is nowhere to write to')
}

/**
 * The place for the data of a command: a file, or stdout as `-`. Then the result goes to stderr, and progress is shown
 * only if stdout is redirected to a file. Throws FileRefused.
 */
export function openOutput(file: string, { quiet, json }: { quiet?: true; json?: true }) {
  const isStdout = file === '-'
  if (isStdout) requireStdout()
  return {
    isStdout,
    quiet: quiet || (isStdout && !isApart()),
    report(summary: object, text: string): void {
      if (!isStdout) printResult(summary, text, json)
      else if (!quiet) warnResult(summary, text, json)
    },
  }
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
