// The service as a process: settings, log, admin server, store, app, listening, the first token, and the end. The only place
// that joins these.
import { existsSync, readFileSync } from 'node:fs'
import { isIPv6 } from 'node:net'
import { setTimeout as sleep } from 'node:timers/promises'
import { buildApp } from './app.ts'
import { openLog } from './log.ts'
import { noMeter } from './metrics.ts'
import { maskDatabaseUrl, SettingError, type Settings } from './settings.ts'
import { finishOnSignal } from './shutdown.ts'
import { openStore } from './store/engines.ts'
import { introduceTokens } from './tokens/first-token.ts'
import { Tokens } from './tokens/tokens.ts'
import { makeVerifier } from './tokens/verifier.ts'

/** A shutdown takes at most this long. */
const stopMs = 10_000

/** Runs the service until a signal ends the process. Rejects with SettingError or StoreRefused if it cannot start. */
export async function runService({ settings, warnings }: { settings: Settings; warnings: string[] }): Promise<void> {
}
