// What goes to stdout: results alone, as words or as JSON. Whoever reads them may stop at any moment (`| head -1`).

/** Prints a line. */
export function print(line: string): void {
  process.stdout.write(`${line}\n`)
}

/** Prints what a command has to say, for machines with --json. */
export function printResult(json: unknown, text: string, asJson: boolean | undefined): void {
  print(asJson ? JSON.stringify(json, null, 2) : text)
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
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    /* c8 ignore next: it says so for each write that is still to come */
    if (fault) return
    fault = error
    if (error.code === 'EPIPE') return
    process.exitCode = 1
    console.error(`plant-store: cannot write to stdout: ${error.message}`)
  })
  return {
    explain(error) {
      /* c8 ignore next: a failure of another kind, after one of stdout */
      if (fault && (error as NodeJS.ErrnoException).code !== fault.code) return undefined
      return fault && (fault.code === 'EPIPE' ? 0 : 1)
    },
  }
}
