// Reads a whole store and checks it against all promises of the service. It changes nothing, and a service may run on
// the store meanwhile: the log is checked up to the head at the beginning.
import { engineOf } from '../../store/engines.ts'
import { withView } from '../../store/open.ts'
import { checkLog, type LogReport } from './check-log.ts'
import { type Fault, Faults } from './faults.ts'

export type VerifyReport = LogReport & {
  engine: string
  schemaVersion: number
  /** The last position that was looked at. */
  head: number
  faultCount: number
  /** The first faults. */
  faults: readonly Fault[]
}

export type VerifyOptions = { onProgress?: ((done: number, total: number) => void) | undefined }

/** Verifies a store. Rejects with StoreRefused when there is none, or one of a newer version. */
export function verifyStore(
  url: string,
  { onProgress = () => {} }: VerifyOptions = {},
): Promise<VerifyReport> {
  return withView(url, async (view) => {
    const faults = new Faults()
    const log = await checkLog(view, faults, onProgress)
    const { integrity } = view.dialect
    if (integrity) {
      const rows = await faults.reading(view, 'the whole file', () => view.select<[string]>(integrity))
      faults.add(...describeIntegrity(rows ?? []))
    }
    const { name: engine } = engineOf(url)
    return { engine, schemaVersion: view.version, ...log, faultCount: faults.count, faults: faults.named }
  })
}

/** Describes faults in rows of the database's own check, which may have several lines, below the name of the database. */
function describeIntegrity(rows: [string][]): Fault[] {
  const lines = rows.flatMap(([text]) => text.split('\n'))
  return lines
    .filter((line) => line !== 'ok' && !line.startsWith('***'))
    .map((line) => ({ detail: `integrity check: ${line}` }))
}
