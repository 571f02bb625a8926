// Resolves the settings in force, and where each comes from: a flag beats the environment, the environment beats
// `.env`.
import { readFileSync, statSync } from 'node:fs'
import { resolve } from 'node:path'
import { parseEnv } from 'node:util'
import { engineOf } from '../store/engines.ts'
import type { Setting } from './setting.ts'
import { type Flags, type SettingName, settingEntries, settings } from './settings.ts'
import { traceOptionsOf } from './trace-settings.ts'
import { ConfigError, UsageError } from './values.ts'
import { findBareSecrets, findWeakSettings } from './warnings.ts'

export type Config = { [K in SettingName]: ReturnType<(typeof settings)[K]['read']> }

/** The text of a setting, where it comes from, and how it is called there. */
type Found = { text: string; origin: string; name: string }

/** What is in force, where it comes from, and possible mistakes, one line each. */
export type Loaded = ReturnType<typeof loadConfig>

type Sources = { flags: Flags; env: NodeJS.ProcessEnv; file: NodeJS.ProcessEnv }

/** Reads the settings from `env` alone. An empty value counts as absent. Throws ConfigError. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  return resolveAll({ flags: {}, env, file: {} }).config
}

/** Reads flags, the environment and `.env` in the working directory. Throws ConfigError. */
export function loadConfig(flags: Flags = {}) {
  const sources = readSources(flags)
  const { config, found } = resolveAll(sources)
  return { config, found, warnings: [...findWeakSettings(config), ...findBareSecrets(flags)] }
}

/**
 * Resolves the database of a command that needs no other setting; `flag`: the value of --database-url. Warns on stderr
 * about a password in the flag. Throws ConfigError.
 */
export function loadDatabaseUrl(flag: string | undefined): string {
  const sources = readSources({ databaseUrl: flag })
  for (const warning of findBareSecrets(sources.flags)) console.error(`plant-store: warning: ${warning}`)
  return resolveOne('databaseUrl', settings.databaseUrl, sources).value
}

/** The file of a database about to be opened, and whether it is opened or created; or the URL, masked. */
export function describeDatabase(url: string): string {
  const file = engineOf(url).path?.(url)
  if (file === undefined) return settings.databaseUrl.mask(url)
  const bytes = statSync(file, { throwIfNoEntry: false })?.size ?? 0
  return `${resolve(file)} (${bytes > 0 ? 'opened' : 'created'})`
}

/** Resolves BASE_PATH for a command that needs no other setting. Throws ConfigError. */
export function loadBasePath(): string {
  return resolveOne('basePath', settings.basePath, readSources({})).value
}

function readSources(flags: Flags): Sources {
  return { flags, env: process.env, file: readEnvFile() }
}

function readEnvFile(): NodeJS.ProcessEnv {
  try {
    // Editors on Windows begin a file with a byte order mark.
    return parseEnv(readFileSync('.env', 'utf8').replace(/^\ufeff/, ''))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return {}
    throw new ConfigError(`.env cannot be read: ${(error as Error).message}`)
  }
}

function resolveAll(sources: Sources) {
  const entries = settingEntries.map(([key, setting]) => ({ key, ...resolveOne(key, setting, sources) }))
  const config = Object.fromEntries(entries.map(({ key, value }) => [key, value])) as Config
  const lone = entries.find(({ key, found }) => key.startsWith('oidc') && found.origin !== 'default')
  if (lone && config.oidcIssuer === undefined)
    throw new ConfigError(`${lone.found.name} has no effect without OIDC_ISSUER`)
  if (config.oidcIssuer !== undefined && config.oidcAudience.length === 0)
    throw new ConfigError(
      'OIDC_ISSUER needs OIDC_AUDIENCE: which tokens of the issuer are meant for this service',
    )
  traceOptionsOf(config)
  const found = Object.fromEntries(entries.map((entry) => [entry.key, entry.found]))
  return { config, found: found as Record<SettingName, Found> }
}

function resolveOne<T>(key: SettingName, setting: Setting<T>, sources: Sources): { found: Found; value: T } {
  const found = find(key, setting, sources)
  try {
    return { found, value: setting.read(found.text, found.name) }
  } catch (error) {
    throw found.origin === 'flag' ? new UsageError((error as Error).message) : error
  }
}

function find(key: SettingName, setting: Setting<unknown>, { flags, env, file }: Sources): Found {
  const text = flags[key]
  if (text) return { text, origin: 'flag', name: String(setting.flag) }
  const none = { text: setting.default, origin: 'default', name: setting.name }
  return findIn(env, setting, 'environment') ?? findIn(file, setting, '.env') ?? none
}

function findIn(variables: NodeJS.ProcessEnv, { name, hasFile }: Setting<unknown>, origin: string) {
  const text = variables[name]
  const fileName = `${name}_FILE`
  const path = hasFile && variables[fileName]
  if (path && text) throw new ConfigError(`${name} and ${fileName} are both set: unset one of them`)
  if (path) return { text: readSecret(path, fileName), origin: fileName, name: fileName }
  return text ? { text, origin, name: origin === '.env' ? `${name} in .env` : name } : undefined
}

/** Reads a file that holds the text of a setting, without the line feeds at its end. */
function readSecret(path: string, name: string): string {
  let text = ''
  try {
    text = readFileSync(path, 'utf8').replace(/[\r\n]+$/, '')
  } catch (error) {
    throw new ConfigError(`${name} cannot be read: ${(error as Error).message}`)
  }
  if (text === '') throw new ConfigError(`${name} ${path} is empty`)
  return text
}
