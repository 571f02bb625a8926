#!/usr/bin/env node
// The entry point: runs a clone's sources on the Node of its lockfile, or a package's compiled code on any suitable Node.
/* c8 ignore start: tests run this on several Nodes, most of which cannot measure its coverage */
import { existsSync, statSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { findRuntime, launch } from './runtime.js'

/**
 * With a young generation of 8 MiB, most objects of a request die before they are promoted. SIGUSR1 must not open a
 * debugger.
 */
const flags = ['--min-semi-space-size=8', '--disable-sigusr1']
const source = fileURLToPath(new URL('../src/cli.ts', import.meta.url))
const isClone = existsSync(source)
const cli = isClone ? source : fileURLToPath(new URL('../dist/src/cli.js', import.meta.url))

/**
 * Caches compiled code beside the packages, for the next start. Not in the directory of another user, nor with a umask
 * that lets other users write there; nor in tests with coverage, which cached code does not support.
 */
const cache = fileURLToPath(new URL('../node_modules/.cache/plant-store', import.meta.url))
const isOwn = process.getuid?.() === statSync(new URL('..', import.meta.url)).uid
const isSafe = process.platform === 'win32' || (isOwn && (process.umask() & 0o002) !== 0)
if (isSafe && !process.env.NODE_V8_COVERAGE) process.env.NODE_COMPILE_CACHE ??= cache

const runtime = findRuntime(isClone)
if (runtime) await launch(runtime, flags, [cli, ...process.argv.slice(2)])
/* c8 ignore stop */
