// Resolves the settings in force, and where each comes from: a flag beats the environment, the environment beats
// `.env`.
import { readFileSync } from 'node:fs'
import { parseEnv } from 'node:util'
import type { Setting } from './setting.ts'
import { type Flags, type SettingName, settingEntries, settings } from './settings.ts'
import { traceOptionsOf } from './trace-settings.ts'
import { ConfigError, UsageError } from './values.ts'
import { findBareSecrets, findBroadAudiences, findMisspelt, findShortTokens } from './warnings.ts'

export type Config = { [K in SettingName]: ReturnType<(typeof settings)[K]['read']> }

export type Origin = 'flag' | 'environment' | '.env' | 'default'

/** The text of a setting, where it comes from, and how it is called there. */
export type Found = { readonly text: string; readonly origin: Origin; readonly name: string }

/** `warnings`: possible mistakes, one line each. */
export type Loaded = {
  config: Config
  found: Record<SettingName, Found>
  warnings: string[]
}

const names = settingEntries.map(([, { name }]) => name)

type Sources = { flags?: Flags; env: NodeJS.ProcessEnv; file?: NodeJS.ProcessEnv }

/** Reads the settings from `env` alone. An empty value counts as absent. Throws ConfigError. */
export function readConfig(env: NodeJS.ProcessEnv): Config {
  return resolve({ env }).config
}

/** Reads flags, the environment and `.env` in the working directory. Throws ConfigError. */
export function loadConfig(flags: Flags = {}): Loaded {
  const sources = readSources(flags)
  const { config, found } = resolve(sources)
  const warnings = [
    ...findMisspelt(sources, names),
    ...findShortTokens(config.accessTokens),
    ...findBroadAudiences(config.oidcAudience),
    ...findBareSecrets(flags),
  ]
  return { config, found, warnings }
}

/**
 * Resolves the database of a command that needs no other setting; `flag`: the value of --database-url. Warns on stderr
 * about a misspelt DATABASE_URL, and about a password in the flag. Throws ConfigError.
 */
export function loadDatabaseUrl(flag: string | undefined): string {
  const sources = readSources({ databaseUrl: flag })
  const misspelt = findMisspelt(sources, [settings.databaseUrl.name])
  for (const warning of [...misspelt, ...findBareSecrets(sources.flags)])
    console.error(`plant-store: warning: ${warning}`)
  return resolveOne('databaseUrl', settings.databaseUrl, sources).value
}

/** Resolves BASE_PATH for a command that needs no other setting. Throws ConfigError. */
export function loadBasePath(): string {
  return resolveOne('basePath', settings.basePath, readSources({})).value
}

function readSources(flags: Flags) {
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

function resolve(sources: Sources): Pick<Loaded, 'config' | 'found'> {
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
  return {
    config,
    found: Object.fromEntries(entries.map(({ key, found }) => [key, found])) as Loaded['found'],
  }
}

function resolveOne<T>(key: SettingName, setting: Setting<T>, sources: Sources): { found: Found; value: T } {
  const found = find(key, setting, sources)
  try {
    return { found, value: setting.read(found.text, found.name) }
  } catch (error) {
    throw found.origin === 'flag' ? new UsageError((error as Error).message) : error
  }
}

function find(key: SettingName, setting: Setting<unknown>, { flags = {}, env, file = {} }: Sources): Found {
  const { name, flag } = setting
  if (flags[key]) return { text: flags[key], origin: 'flag', name: flag }
  if (env[name]) return { text: env[name], origin: 'environment', name }
  if (file[name]) return { text: file[name], origin: '.env', name: `${name} in .env` }
  return { text: setting.default, origin: 'default', name }
}
