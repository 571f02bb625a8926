// The output of commands: results on stdout, as text or JSON; everything else on stderr, such as progress.
import { fstatSync, writeFile } from 'node:fs'
import { constants } from 'node:os'
import { printable } from '../log-text.ts'
import type { WorkOptions } from './options.ts'

/** A command failed (exit code 1). The message is one line for the user. */
export class CommandError extends Error {}

/** Formats a number with a noun: `1 plant`, `1,234 plants`. Not for log positions, which are typed without commas. */
export const count = (number: number, noun: string) => `${separate(number)} ${noun}${number === 1 ? '' : 's'}`

/** Formats a number: `1,234`. */
export const separate = (number: number) => number.toLocaleString('en-US')

/** Prints the result of a command, as text or with --json. Rejects if it cannot be written. */
export const printResult = (json: unknown, text: string, asJson: boolean | undefined) =>
  print(`${asJson ? JSON.stringify(json, null, 2) : text}\n`)

/** Writes to stdout. Rejects if this, or anything before it, cannot be written. */
function print(text: string): Promise<void> {
  return new Promise((resolve, reject) => {
    process.stdout.write(text, (error) => (error ? reject(error) : resolve()))
  })
}

/** Prints the result of a command that writes a file: to stdout, or to stderr if the file is stdout (`-`). */
export async function reportFile(file: string | undefined, facts: object, text: string, flags: WorkOptions) {
  if (file !== '-') return printResult(facts, text, flags.json)
  await print('')
  if (!flags.quiet) console.error(flags.json ? JSON.stringify(facts) : text)
}

/**
 * Prevents errors of stdout from ending the process. Returns a function that maps such an error to an exit code: 0 if
 * the reader closed stdout (`| head -1`), 1 otherwise; any other error to undefined.
 */
export function watchOutput(): (error: unknown) => number | undefined {
  /** Exit codes by error. */
  const codes = new Map<unknown, number>()
  // Ignore errors of stderr: the exit code still shows whether the command failed.
  process.stderr.on('error', () => {})
  // Node's own function for files ignores that a full disk took only a part of the chunk.
  if (fstatSync(1).isFile()) process.stdout._write = (chunk, _encoding, done) => writeFile(1, chunk, done)
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    codes.set(error, error.code === 'EPIPE' ? 0 : 1)
    // Later writes fail in the same way.
    if (error.code === 'EPIPE' || codes.size > 1) return
    process.exitCode = 1
    console.error(`plant-store: cannot write to stdout: ${error.message}`)
  })
  return (error) => codes.get(error)
}

/** Formats rows as aligned columns below their headings, without trailing spaces. */
export function formatTable(head: string[], rows: string[][]): string {
  const table = [head, ...rows]
  const widthOf = (column: number) =>
    table.reduce((most, row) => Math.max(most, String(row[column]).length), 0)
  const widths = head.map((_, column) => widthOf(column))
  const formatRow = (row: string[]) => row.map((cell, column) => cell.padEnd(widths[column] ?? 0)).join('  ')
  return table.map((row) => formatRow(row).trimEnd()).join('\n')
}

export const signals = ['SIGINT', 'SIGTERM', 'SIGHUP'] as const
const clearLine = '\x1b[1G\x1b[2K'

type Terminal = NodeJS.WritableStream & { isTTY?: boolean; columns?: number; writableNeedDrain?: boolean }

export type Progress = ReturnType<typeof startProgress>

/**
 * Runs `work`. SIGINT, SIGTERM or SIGHUP aborts its `signal`; `work` must then remove its files synchronously. The
 * process prints `advice`, and ends by that signal.
 */
export async function doLongWork<T>(
  { quiet, advice }: { quiet?: boolean | undefined; advice: string },
  work: (progress: Progress, signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const progress = startProgress(quiet)
  const controller = new AbortController()
  const stop = (by: (typeof signals)[number]): never => {
    controller.abort()
    progress.end()
    console.error(`plant-store: ${advice}`)
    for (const name of signals) process.removeAllListeners(name)
    process.kill(process.pid, by)
    // Process 1 of a container ignores a signal that it sends to itself.
    process.exit(128 + constants.signals[by])
  }
  for (const name of signals) process.on(name, stop)
  try {
    return await work(progress, controller.signal)
  } finally {
    progress.end()
    for (const name of signals) process.off(name, stop)
  }
}

/** Shows progress: one line that is updated on a terminal, otherwise a new line every few seconds. */
export function startProgress(quiet?: boolean, stream: Terminal = process.stderr, now = Date.now) {
  const isTerminal = stream.isTTY && process.env.TERM !== 'dumb'
  const startMs = now()
  let [shownMs, isShown] = [startMs, false]
  /** Clears the progress line on a terminal. */
  const end = () => {
    if (isShown) stream.write(clearLine)
    isShown = false
  }
  return {
    end,
    /** Shows the progress, at most every 100 ms on a terminal, otherwise every 5 s. */
    show(done: number, total?: number, noun = 'plant'): void {
      if (quiet || now() - shownMs < (isTerminal ? 100 : 5000)) return
      shownMs = now()
      const rate = `${count(Math.round((done / (shownMs - startMs)) * 1000), noun)}/s`
      const part = total === undefined ? '' : `${Math.floor((done / Math.max(total, 1)) * 100)} % · `
      const all = total === undefined ? count(done, noun) : `${separate(done)} of ${count(total, noun)}`
      const line = `${part}${all} · ${rate}`
      // Cut to the width of the terminal: a wrapped line could not be cleared.
      stream.write(isTerminal ? clearLine + line.slice(0, stream.columns || 80) : `${line}\n`)
      isShown = isTerminal === true
    },
    /** Waits while the buffer of the stream is full, such as that of a pipe with a slow reader. */
    async written(): Promise<void> {
      // Not `drain`, which is not emitted after an error.
      if (stream.writableNeedDrain) await new Promise<unknown>((resolve) => stream.write('', resolve))
    },
    /** Writes a permanent line, even with --quiet. */
    print(line: string): void {
      end()
      stream.write(`${printable(line)}\n`)
    },
  }
}
