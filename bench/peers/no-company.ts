// Loaded into the service before itself: its batches wait for nobody. What the wait for company costs is what the service
// takes more without this. It says so in the log, so that the bench can tell that it was loaded.
import { registerHooks } from 'node:module'
import type { Company } from '../../src/plants/company.ts'

/** Whoever is there makes a batch. */
class NoCompany implements Pick<Company, keyof Company> {
  come(): void {}

  gather(): Promise<void> {
    return Promise.resolve()
  }
}

registerHooks({
  load(url, context, next) {
    if (!url.endsWith('/src/plants/company.ts')) return next(url, context)
    console.error(JSON.stringify({ level: 30, msg: 'no company' }))
    const source = `export const Company = globalThis.NoCompany`
    return { format: 'module', source, shortCircuit: true }
  },
})
Object.assign(globalThis, { NoCompany })
