// The names of new files and directories are on stable storage, or nothing is left.
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import { dirname, join } from 'node:path'
import { type Test, test } from 'tap'
import { writeNewFile } from '../../src/cli/new-file.ts'
import { makeDirectory } from '../../src/store/sqlite/path.ts'
import { introduceTokens } from '../../src/tokens/first-token.ts'
import { createDirectory } from '../support/engines.ts'
import { openFile } from '../support/stores.ts'

function replaceUntilEnd<K extends keyof typeof fs>(t: Test, name: K, value: (typeof fs)[K]): void {
  const original = fs[name]
  const replace = (by: (typeof fs)[K]) => {
    fs[name] = by
    syncBuiltinESMExports()
  }
  t.teardown(() => replace(original))
  replace(value)
}

/** Calls `seen` with the path before each file is opened. */
function watchOpen(t: Test, seen: (path: string) => void): void {
  const { openSync } = fs
  replaceUntilEnd(t, 'openSync', (path, ...rest) => {
    seen(String(path))
    return openSync(path, ...rest)
  })
}

test('leaves no file in a directory that cannot be read, and therefore not synced', async (t) => {
  const { store } = await openFile(t)
  const directory = createDirectory(t)
  watchOpen(t, (path) => {
    const refusal = { code: 'EACCES', syscall: 'open', path }
    if (path === directory) throw Object.assign(new Error('EACCES: permission denied'), refusal)
  })
  const [file, plantsUrl] = [join(directory, 'token'), '']
  await t.rejects(introduceTokens(store.tokens, { file, plantsUrl }), { message: /EACCES/ })
  const { signal } = new AbortController()
  const write = async (path: string) => fs.writeFileSync(path, '')
  await t.rejects(writeNewFile(join(directory, 'new'), { signal }, write), { message: /EACCES/ })
  t.strictSame(fs.readdirSync(directory), [])
})

test('leaves no token that it could not give to the owner of the directory', async (t) => {
  const { store } = await openFile(t)
  const directory = createDirectory(t)
  const [file, plantsUrl] = [join(directory, 'token'), '']
  t.intercept(process, 'geteuid', { value: () => 0 })
  replaceUntilEnd(t, 'lchownSync', () => {
    throw Object.assign(new Error('EDQUOT'), { code: 'EDQUOT', syscall: 'lchown', path: file })
  })
  await t.rejects(introduceTokens(store.tokens, { file, plantsUrl }), { message: /EDQUOT/ })
  t.strictSame(fs.readdirSync(directory), [])
})

test('syncs the name of a directory that a killed process may have created', async (t) => {
  const opened: string[] = []
  const directory = createDirectory(t)
  watchOpen(t, (path) => opened.push(path))
  // A directory of autofs cannot be synced.
  replaceUntilEnd(t, 'fsyncSync', () => {
    throw Object.assign(new Error('EINVAL'), { code: 'EINVAL' })
  })
  makeDirectory(directory)
  t.strictSame(opened, [dirname(directory)])
})
