// Runs a file, or the program of a package such as `tap` or `typescript:tsc`, on the Node of the lockfile, without the
// links in node_modules/.bin: npm 10 does not link this Node.
/* c8 ignore start: the Node that starts this may not support coverage */
import { readFileSync } from 'node:fs'
import { createRequire } from 'node:module'
import { delimiter, dirname, join, resolve } from 'node:path'
import { findRuntime, launch } from '../bin/runtime.js'

function locate(program) {
  if (/\.[jt]s$/.test(program)) return resolve(program)
  const [name, bin = name] = program.split(':')
  const manifest = createRequire(import.meta.url).resolve(`${name}/package.json`)
  return join(dirname(manifest), JSON.parse(readFileSync(manifest, 'utf8')).bin[bin])
}

const [program, ...args] = process.argv.slice(2)
const runtime = findRuntime(true)
if (runtime) {
  // So that processes started by the program find the same `node`.
  process.env.PATH = [dirname(runtime), process.env.PATH].join(delimiter)
  process.env.NODE_COMPILE_CACHE ??= resolve('.tap/compiled')
  await launch(runtime, [], [locate(program), ...args])
}
/* c8 ignore stop */
