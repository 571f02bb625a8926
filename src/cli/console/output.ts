// Output to stdout: results alone, as words or as JSON. The reader may stop at any moment (`| head -1`).

import { fstatSync } from 'node:fs'
import { isSameFile } from '../../runtime/same-file.ts'

/** Prints a line. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Prints what a command has to say, for machines with --json. */
export function printResult(json: unknown, text: string, asJson: boolean | undefined): void {
  print(asJson ? JSON.stringify(json, null, 2) : text)
}

/** Likewise for commands whose stdout holds data: on stderr, and in one line. */
export function warnResult(json: unknown, text: string, asJson: boolean | undefined): void {
  console.error(asJson ? JSON.stringify(json) : text)
}

/** True when stderr is apart from stdout: on one terminal, or behind a pipe to one, its lines stand among the data. */
export function isApart(): boolean {
  const [stdout, stderr] = [fstatSync(1), fstatSync(2)]
  return stdout.isFile() && !isSameFile(stdout, stderr)
}

/** How a fault of stdout ends the command: 0 when nobody reads it any more, 1 when the disk is full, for instance. */
export type Output = { explain(error: unknown): number | undefined }

/**
 * Lets a command that prints go on to its end when nobody reads what it prints; a pipeline into stdout fails, and
 * `explain` knows that failure by its code. Other faults are told at once. Without a stderr a command goes on, too: its exit
 * code says how it went.
 */
export function watchOutput(): Output {
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
  return {
    explain(error) {
      if (fault && (error as NodeJS.ErrnoException).code !== fault.code) return undefined
      return fault && (fault.code === 'EPIPE' ? 0 : 1)
    },
  }
}
