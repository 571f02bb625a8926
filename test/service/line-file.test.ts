// The file behind the log: whole lines, in order, and no more of them in memory than there may be.
import { execFileSync } from 'node:child_process'
import { closeSync, constants, openSync, readFileSync, readSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { setImmediate } from 'node:timers/promises'
import { type Test, test } from 'tap'
import { LineFile } from '../../src/logging/line-file.ts'
import { collect } from '../../src/runtime/garbage.ts'
import { createDirectory } from '../support/engines.ts'

function open(t: Test, maxBytes: number) {
  const path = join(createDirectory(t), 'log')
  const descriptor = openSync(path, 'w')
  t.teardown(() => closeSync(descriptor))
  const told: number[] = []
  const file = new LineFile({ descriptor, maxBytes, tellDropped: (lines) => told.push(lines) })
  return { file, told, lines: () => readFileSync(path, 'utf8').split('\n').slice(0, -1) }
}

test('lines that come while others are being written follow them, text as well as bytes', async (t) => {
  const { file, told, lines } = open(t, 8 * 2 ** 20)
  const expected: string[] = []
  for (let round = 0; round < 3; round++) {
    for (let n = 0; n < 3000; n++) {
      const line = `${round}.${n} ñ ${'x'.repeat(n % 500)}`
      expected.push(line)
      if (n % 2 === 0) file.write(`${line}\n`)
      else {
        const bytes = Buffer.from(`${line}\n`)
        file.write(bytes)
        bytes.fill(0)
      }
    }
    await file.end()
    t.strictSame(lines(), expected)
  }
  t.equal(file.dropped, 0)
  t.same(told, [])
})

test('lines without room are counted, and their number is logged once there is room again', async (t) => {
  const { file, told, lines } = open(t, 1000)
  const two = `${'a'.repeat(199)}\n${'b'.repeat(199)}\n`
  for (let n = 0; n < 4; n++) file.write(n % 2 === 0 ? two : Buffer.from(two))
  t.equal(file.dropped, 4)
  t.same(told, [], 'not while there is none')
  await file.end()
  t.same(told, [4])
  t.equal(lines().length, 4)
  file.write('c\n')
  await file.end()
  t.same([lines().at(-1), told, file.dropped], ['c', [4], 4])
})

test('a log that is full because it could not be written goes on once it can be', async (t) => {
  const path = join(createDirectory(t), 'log')
  writeFileSync(path, '')
  const descriptor = openSync(path, 'r')
  const told = Promise.withResolvers<number>()
  const file = new LineFile({ descriptor, maxBytes: 1000, tellDropped: told.resolve })
  const line = `${'a'.repeat(199)}\n`
  for (let n = 0; n < 6; n++) file.write(line)
  await file.end()
  t.equal(file.dropped, 1)
  closeSync(descriptor)
  const writable = openSync(path, 'a')
  t.teardown(() => closeSync(writable))
  t.equal(writable, descriptor, 'the number is free, and the lowest one')
  file.write(line)
  t.equal(await told.promise, 2)
  t.equal(readFileSync(path, 'utf8'), line.repeat(5))
})

test('the memory of a burst is given back once it is written', async (t) => {
  const { file, lines } = open(t, 8 * 2 ** 20)
  const count = () => {
    collect('major')
    return process.memoryUsage().arrayBuffers
  }
  // Buffers of the tests before are given back in later turns.
  let before = count()
  for (let last = Number.POSITIVE_INFINITY; before < last; before = count()) {
    last = before
    await setImmediate()
  }
  for (let n = 0; n < 24; n++) file.write(`${'x'.repeat(2 ** 18)}\n`)
  t.ok(count() > before + 5 * 2 ** 20)
  await file.end()
  t.equal(lines().length, 24)
  for (let turn = 0; turn < 100 && count() >= before + 2 ** 20; turn++) await setImmediate()
  t.ok(count() < before + 2 ** 20)
})

test('a pipe that does not block gets the rest once its reader has made room', async (t) => {
  const path = join(createDirectory(t), 'pipe')
  execFileSync('mkfifo', [path])
  const descriptor = openSync(path, constants.O_RDWR | constants.O_NONBLOCK)
  t.teardown(() => closeSync(descriptor))
  const told: number[] = []
  const file = new LineFile({ descriptor, maxBytes: 2 ** 21, tellDropped: (lines) => told.push(lines) })
  const lines = `${'a'.repeat(99)}\n`.repeat(10_000)
  file.write(lines)
  const ended = file.end()
  const chunk = Buffer.alloc(lines.length)
  let read = ''
  while (read.length < lines.length) {
    await setImmediate()
    read += chunk.toString('latin1', 0, readWhatIsThere(descriptor, chunk))
  }
  await ended
  t.equal(read, lines)
  t.same([told, file.dropped], [[], 0])
})

test('where nothing is left to write, the end is at once', async (t) => {
  const { file, lines } = open(t, 1000)
  const end = () => Promise.race([file.end().then(() => 'at once'), setImmediate('later')])
  t.equal(await end(), 'at once')
  file.write('a\n')
  t.equal(await end(), 'later')
  await file.end()
  t.strictSame(lines(), ['a'])
  t.equal(await end(), 'at once')
})

test('lines for a reader that is gone are counted, and the next reader gets what follows', async (t) => {
  const path = join(createDirectory(t), 'pipe')
  execFileSync('mkfifo', [path])
  const first = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  const descriptor = openSync(path, constants.O_WRONLY | constants.O_NONBLOCK)
  t.teardown(() => closeSync(descriptor))
  closeSync(first)
  const told: number[] = []
  const file = new LineFile({ descriptor, maxBytes: 1000, tellDropped: (lines) => told.push(lines) })
  file.write('a\nb\n')
  await file.end()
  t.same([file.dropped, told], [2, []])
  const second = openSync(path, constants.O_RDONLY | constants.O_NONBLOCK)
  t.teardown(() => closeSync(second))
  file.write('c\n')
  await file.end()
  t.same([file.dropped, told], [2, [2]])
  const chunk = Buffer.alloc(10)
  t.equal(chunk.toString('latin1', 0, readWhatIsThere(second, chunk)), 'c\n')
})

function readWhatIsThere(descriptor: number, chunk: Buffer): number {
  try {
    return readSync(descriptor, chunk)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EAGAIN') return 0
    throw error
  }
}
