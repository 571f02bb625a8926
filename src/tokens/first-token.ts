// Creates and announces the first token of a new store; for other stores, explains how to create a token.
import { rmSync, writeFileSync } from 'node:fs'
import { resolve } from 'node:path'
import { giveToOwner, syncDirectoryOf } from '../file-system.ts'
import { SettingError } from '../setting-values.ts'
import type { TokenTable } from '../store/engine.ts'
import { StoreUnavailable } from '../store/errors.ts'
import { commandName } from '../version.ts'
import { makeToken } from './format.ts'
import { createToken, isValidAt } from './tokens.ts'

/** The first token of every store has this id, so that only one of several replicas can create it. */
const firstTokenId = '00000000'

/** `file`: where to write the first token, instead of stdout; `plantsUrl`: for an example request with the token. */
type FirstTokenOptions = { file: string | undefined; plantsUrl: string }

/**
 * Creates the first token if the store never had a token. Resolves to the message to print. If the file exists or
 * cannot be written, creates no token and rejects with SettingError.
 */
export async function introduceTokens(table: TokenTable, { file: path, plantsUrl }: FirstTokenOptions) {
  const file = path && resolve(path)
  const token = await createFirst(table, file)
  if (token === undefined) {
    const valid = (await table.all()).filter(isValidAt(Date.now())).length
    return `valid tokens: ${valid}. To create ${valid ? 'another' : 'one'}: ${commandName} token create --name NAME`
  }
  const place = file
    ? `so one was created and written to ${file}, which only you can read.`
    : `so one was created. It is shown only once:\n\n  ${token}`
  const header = file
    ? `"Authorization: Bearer $(cat '${file.replaceAll("'", "'\\''")}')"`
    : `'Authorization: Bearer ${token}'`
  return `This store had no tokens, ${place}\n\nTry it:\n\n  curl -H ${header} ${plantsUrl}\n`
}

/** Creates the first token; undefined if the store ever had a token. Writes the file before the token becomes valid. */
export async function createFirst(table: TokenTable, file?: string): Promise<string | undefined> {
  if ((await table.all()).length > 0) return undefined
  const made = makeToken(firstTokenId)
  if (file) writeOnce(file, `${made.token}\n`)
  const discard = () => file && rmSync(file)
  try {
    const token = await createToken(table, { name: 'first' }, made)
    if (token === undefined) discard()
    return token
  } catch (error) {
    // If the outcome is unknown, the token may be valid.
    if (!(error instanceof StoreUnavailable) || error.outcome !== 'unknown') discard()
    throw error
  }
}

/** Creates a file on stable storage. */
function writeOnce(file: string, text: string): void {
  try {
    writeFileSync(file, text, { flag: 'wx', mode: 0o600, flush: true })
    giveToOwner(file)
    syncDirectoryOf(file)
  } catch (error) {
    const { code, message, path, syscall } = error as NodeJS.ErrnoException
    if (code === 'EEXIST')
      throw new SettingError(
        `FIRST_TOKEN_FILE ${file} already exists: start again; if that fails, move it away`,
      )
    /* c8 ignore next 2: the disk is full */
    // The error is not of the creation: the file exists, but is not on stable storage.
    if (path !== file || syscall !== 'open') rmSync(file, { force: true })
    throw new SettingError(`FIRST_TOKEN_FILE cannot be written, so no token was created: ${message}`)
  }
}
