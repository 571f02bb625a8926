// Creates and announces the first token of a new store; otherwise says how to create one.
import { rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { giveToOwner, syncDirectoryOf } from '../file-system.ts'
import { SettingError } from '../setting-values.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { command } from '../version.ts'
import type { Tokens } from './tokens.ts'

/** `file`: for the first token, instead of stdout. `plantsUrl`: for an example that uses it. */
type FirstTokenOptions = { file: string | undefined; plantsUrl: string }

/**
 * Makes the first token of a store that never had one; resolves to the text to print. Rejects with SettingError, without
 * having made a token, when the file exists or cannot be written.
 */
export async function introduceTokens(tokens: Tokens, { file: path, plantsUrl }: FirstTokenOptions) {
  const file = path && resolve(path)
  const token = file ? await writeFirst(tokens, file) : await tokens.createFirst()
  if (token === undefined) {
    const valid = await tokens.countValid()
    return `valid tokens: ${valid}. To create ${valid ? 'another' : 'one'}: ${command} token create --name NAME`
  }
  const place = file
    ? `so one was created and written to ${file}, which only you can read.`
    : `so one was created. It is shown only once:\n\n  ${token}`
  const header = file
    ? `"Authorization: Bearer $(cat '${file.replaceAll("'", "'\\''")}')"`
    : `'Authorization: Bearer ${token}'`
  return `This store had no tokens, ${place}\n\nTry it:\n\n  curl -H ${header} ${plantsUrl}\n`
}

/** Writes the token to the file, on stable storage, before the token becomes valid. */
async function writeFirst(tokens: Tokens, file: string): Promise<string | undefined> {
  let discard = () => {}
  try {
    const token = await tokens.createFirst((text) => {
      writeOnce(file, `${text}\n`)
      discard = () => rmSync(file)
    })
    if (token === undefined) discard()
    return token
  } catch (error) {
    // After a COMMIT with an unknown outcome the token may be valid.
    if (!(error instanceof StoreUnavailable) || error.outcome !== 'unknown') discard()
    throw error
  }
}

function writeOnce(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: 0o600, flush: true })
    giveToOwner(file)
    syncDirectoryOf(file)
  } catch (error) {
    const { code, message, syscall } = error as NodeJS.ErrnoException
    if (code === 'EEXIST')
      throw new SettingError(
        `FIRST_TOKEN_FILE ${file} already exists, so no token was created: move the file away, then start again`,
      )
    /* c8 ignore next 2: the disk is full */
    // The file was made, but not written in full.
    if (syscall !== 'open') rmSync(file, { force: true })
    throw new SettingError(`FIRST_TOKEN_FILE cannot be written, so no token was created: ${message}`)
  }
}
