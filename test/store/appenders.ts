// Starts appender.ts and exchanges lines with it.
import { createInterface } from 'node:readline'
import type { Test } from 'tap'
import { root, spawnProgram } from '../support/processes.ts'

const script = `${root}test/store/appender.ts`

export type Appender = Awaited<ReturnType<typeof startAppender>>

/** `wrap`: a program that starts it, such as `strace`, and its arguments. The process is killed when the test ends. */
export async function startAppender(t: Test, path: string, { wrap = [] }: { wrap?: string[] } = {}) {
  const [command = '', ...args] = [...wrap, process.execPath, script, path]
  const env = { ...process.env, NODE_OPTIONS: '' }
  const { child, output, ...running } = spawnProgram(t, command, args, { env, input: null })
  const ended = running.ended.then(({ code, signal }) => (code ?? signal) as number | string)
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]()
  const next = async () => String((await lines.next()).value ?? (await ended))
  await next()
  return {
    pid: child.pid as number,
    /** The standard error so far. */
    errors: () => output().stderr,
    /** Adds a plant; resolves to the response of the process. */
    add(name: string) {
      child.stdin.write(`${name}\n`)
      return next()
    },
    /** Ends the process normally; resolves to its exit code or signal. */
    end() {
      child.stdin.end()
      return ended
    },
  }
}

/** Adds `count` plants. Resolves to the names of the added ones, and to the other responses. */
export async function addMany(appender: Pick<Appender, 'add'>, count: number) {
  const added: string[] = []
  const answers: string[] = []
  for (let n = 0; n < count; n++) {
    const answer = await appender.add(`${n}`)
    if (/^\d+$/.test(answer)) added.push(`${n}`)
    else answers.push(answer)
  }
  return { added, answers }
}
