// The progress of long commands.
import { PassThrough } from 'node:stream'
import { test } from 'tap'
import { startProgress } from '../../src/cli/console.ts'

type Step = [second: number, done: number, total: number | undefined, noun?: string]

/** Reports each step at its second, and returns the whole output. */
function show(terminal: object, steps: Step[], quiet = false): string {
  const stream = Object.assign(new PassThrough({ encoding: 'utf8' }), terminal)
  let now = 1000
  const progress = startProgress(quiet, stream, () => now)
  for (const [second, ...step] of steps) {
    now = 1000 + second * 1000
    progress.show(...step)
  }
  progress.end()
  return String(stream.read() ?? '')
}

const steps: Step[] = [
  [0, 0, 10_000],
  [0.05, 50, 10_000],
  [1, 1000, 10_000],
  [5, 5000, 10_000],
  [6, 6000, 10_000],
]

test('prints a line every five seconds without a terminal', async (t) => {
  t.equal(show({}, steps), '50 % · 5,000 of 10,000 plants · 1,000 plants/s\n')
  t.equal(show({}, steps.slice(0, 3)), '', 'prints nothing for short work')
  t.match(show({}, [[5, 9999, 10_000]]), /^99 % /)
  t.equal(show({}, [[5, 5000, undefined]]), '5,000 plants · 1,000 plants/s\n')
  t.equal(show({}, [[5, 0, 0, 'page']]), '0 % · 0 of 0 pages · 0 pages/s\n')
})

test('shows a line on a terminal that fits its width, and removes it', async (t) => {
  const wide = show({ isTTY: true, columns: 200 }, steps)
  t.match(wide, '\u001b[2K10 % · 1,000 of 10,000 plants · 1,000 plants/s\u001b[1G\u001b[2K50 %')
  t.ok(wide.endsWith('\u001b[1G\u001b[2K'), 'the line is empty at the end')
  t.notMatch(wide, '\n')
  t.match(show({ isTTY: true, columns: 0 }, steps), '50 % ', 'its width may be unknown')
  const narrow = show({ isTTY: true, columns: 30 }, steps).split(/\u001b\[\d[A-Z]/)
  t.ok(narrow.some((text) => text.length === 30))
  t.ok(narrow.every((text) => text.length <= 30))
})

test('prints messages in place of the progress, without control characters', async (t) => {
  const stream = Object.assign(new PassThrough({ encoding: 'utf8' }), { isTTY: true, columns: 80 })
  let now = 0
  const progress = startProgress(false, stream, () => now)
  now = 1000
  progress.show(5, 10)
  progress.print('line 7: \u001b[2J')
  now = 2000
  progress.show(6, 10)
  progress.end()
  t.match(stream.read(), /50 %.*\u001b\[2Kline 7: \\x1b\[2J\n.*60 %/s)
})

test('shows no progress with --quiet, and lines on a dumb terminal', async (t) => {
  for (const terminal of [{ isTTY: true }, {}]) t.equal(show(terminal, steps, true), '')
  process.env.TERM = 'dumb'
  t.equal(show({ isTTY: true }, steps), show({}, steps))
})
