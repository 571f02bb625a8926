// What the suite reaches of src/ and schemas/, in every process and thread that a test starts, as V8 counts it.
import { spawnSync } from 'node:child_process'
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { fileURLToPath, pathToFileURL } from 'node:url'

const directory = resolve('.tap/coverage')
const ours = ['src/', 'schemas/'].map((folder) => pathToFileURL(resolve(folder)).href)

export class Coverage {
  /** Has each process write what it reached when it ends. */
  readonly env = { NODE_V8_COVERAGE: directory }

  constructor() {
    rmSync(directory, { recursive: true, force: true })
    mkdirSync(directory, { recursive: true })
  }

  /** Prints what was not reached. False when there is anything. */
  check(): boolean {
    for (const name of readdirSync(directory)) keepOurs(`${directory}/${name}`)
    const args = ['report', '--temp-directory', directory, '--reporter', 'text', '--skip-full']
    const included = ['--include', 'src/**', '--include', 'schemas/**']
    // Which side of a race between threads and processes is met differs from run to run: a branch in a thousand may.
    const least = ['--lines', '100', '--functions', '100', '--statements', '100', '--branches', '99.9']
    const c8 = fileURLToPath(import.meta.resolve('c8/bin/c8.js'))
    const { status } = spawnSync(process.execPath, [c8, ...args, ...included, '--check-coverage', ...least], {
      stdio: 'inherit',
    })
    return status === 0
  }
}

/** Most of what V8 writes is of Node and of packages. A process that was killed while it wrote has left half a file. */
function keepOurs(path: string): void {
  const report = parse(readFileSync(path, 'utf8'))
  const result = report?.result.filter(({ url }) => ours.some((folder) => url.startsWith(folder)))
  if (result) writeFileSync(path, JSON.stringify({ result }))
  else rmSync(path)
}

function parse(text: string): { result: { url: string }[] } | undefined {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
