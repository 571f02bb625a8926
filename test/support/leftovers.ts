// What a test file must not leave behind: processes and directories. Tests end and remove their own; this is for those
// that are killed before they can.
import { type ChildProcess, spawn } from 'node:child_process'
import { fileURLToPath } from 'node:url'

let cleaner: ReturnType<typeof start> | undefined

function start() {
  const script = fileURLToPath(new URL('./cleaner.ts', import.meta.url))
  // Without the tests' instruments, and out of reach of signals to the tests' process group.
  const { PATH, NODE_COMPILE_CACHE } = process.env
  const child = spawn(process.execPath, [script], {
    stdio: ['pipe', 'ignore', 'inherit'],
    detached: true,
    env: { PATH, NODE_COMPILE_CACHE },
  })
  child.unref()
  const { stdin } = child
  ;(stdin as typeof stdin & { unref(): void }).unref()
  return stdin
}

function tell(line: string): void {
  cleaner ??= start()
  cleaner.write(`${line}\n`)
}

/** Has a directory removed when this process ends, if it is still there. */
export function noteDirectory(directory: string): void {
  tell(`+directory ${directory}`)
}

/** Has a process killed when this one ends, unless it has ended. */
export function noteProcess(child: ChildProcess): void {
  tell(`+pid ${child.pid}`)
  child.once('exit', () => tell(`-pid ${child.pid}`))
}
