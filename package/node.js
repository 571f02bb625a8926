// Runs FILE ARGUMENTS on the Node of the lockfile, as `node` does in a shell: npm 10 makes no link to it that scripts find.
/* c8 ignore start: the Node that starts it may be one that cannot count its coverage */
import { delimiter, dirname, resolve } from 'node:path'
import { findRuntime, launch } from '../bin/runtime.js'

const [file, ...args] = process.argv.slice(2)
const runtime = findRuntime(true)
if (runtime) {
  // So that `node` is the same one in whatever the file starts.
  process.env.PATH = [dirname(runtime), process.env.PATH].join(delimiter)
  await launch(runtime, [], [resolve(file), ...args])
}
/* c8 ignore stop */
