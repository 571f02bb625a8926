// Runs a program to its end, as a reader of the documentation would.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { text } from 'node:stream/consumers'
import { noteProcess } from './leftovers.ts'

export type Ran = { code: number | null; stdout: string; stderr: string }

/** How the registry is reached from here. With another prefix npm would look for its settings elsewhere. */
const way =
  /^(?:npm_config_(?:cache|cafile|globalconfig|https_proxy|noproxy|proxy|registry|userconfig)|https?_proxy|no_proxy|NODE_EXTRA_CA_CERTS|SSL_CERT_\w+)$/i

/** What of the environment npm finds the registry by. */
function wayToRegistry(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => way.test(name)))
}

/** Resolves when the program has ended and all it wrote was read. */
export async function run(
  command: string,
  args: string[],
  options: { cwd?: string; env?: NodeJS.ProcessEnv; input?: string } = {},
): Promise<Ran> {
  const { input = '', cwd, env } = options
  // Without the tests' instruments.
  const { PATH, HOME } = process.env
  const own = { ...wayToRegistry(), PATH, HOME, NODE_V8_COVERAGE: '', ...env }
  const child = spawn('env', ['-u', 'NODE_OPTIONS', command, ...args], { cwd, env: own })
  noteProcess(child)
  child.stdin.on('error', () => {}).end(input)
  const [stdout, stderr, [code]] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, 'close'),
  ])
  return { code, stdout, stderr }
}
