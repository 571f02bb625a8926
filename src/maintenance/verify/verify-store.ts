// Reads a whole store and checks it against all promises of the service. It changes nothing, and a service may run on
// the store meanwhile: the log is checked up to the head at the beginning.
import { engineOf, withView } from '../../store/engines.ts'
import { checkLog } from './check-log.ts'
import { Faults } from './faults.ts'

export type VerifyReport = Awaited<ReturnType<typeof verifyStore>>

export type VerifyOptions = { onProgress?: ((done: number, total: number) => void) | undefined }

/**
 * Verifies a store; `faults`: the first ones; for the rest see `checkLog`. Rejects with StoreRefused when there is none,
 * or one of a newer version.
 */
export function verifyStore(url: string, { onProgress = () => {} }: VerifyOptions = {}) {
  return withView(url, async (view) => {
    const faults = new Faults()
    const log = await checkLog(view, faults, onProgress)
    const { checkFile } = view
    if (checkFile) faults.add(...((await faults.reading(view, 'the whole file', checkFile)) ?? []))
    const { name: engine } = engineOf(url)
    return { engine, schemaVersion: view.version, ...log, faultCount: faults.count, faults: faults.named }
  })
}
