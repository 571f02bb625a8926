#!/usr/bin/env node
// Starts the command line: a clone's sources on the Node of its lockfile, a package's compiled code on any suitable Node.
/* c8 ignore start: tests run this on several Nodes, most of which cannot count its coverage */
import { existsSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { findRuntime, launch } from './runtime.js'

/**
 * With a young generation of 8 MiB, most objects of a request die before they would be promoted. SIGUSR1 opens no
 * debugger.
 */
const flags = ['--min-semi-space-size=8', '--disable-sigusr1']
const source = fileURLToPath(new URL('../src/cli.ts', import.meta.url))
const isClone = existsSync(source)
const cli = isClone ? source : fileURLToPath(new URL('../dist/src/cli.js', import.meta.url))

/**
 * Caches compiled code for the next start, beside the packages; not in the directory of another user, nor with a
 * umask that would let other users write there, nor for tests with coverage, which cached code lacks.
 */
const cache = fileURLToPath(new URL('../node_modules/.cache/plant-store', import.meta.url))
const isOwn = process.getuid?.() === statSync(new URL('..', import.meta.url)).uid
const isSafe = process.platform === 'win32' || (isOwn && (process.umask() & 0o002) !== 0)
if (isSafe && !process.env.NODE_V8_COVERAGE) process.env.NODE_COMPILE_CACHE ??= cache

const runtime = findRuntime(isClone)
if (runtime) await launch(runtime, flags, [cli, ...process.argv.slice(2)])
/* c8 ignore stop */
