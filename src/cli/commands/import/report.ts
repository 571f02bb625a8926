// What an import says at its end, however it ends.
import type { ImportResult } from '../../../maintenance/import/import-options.ts'
import { count, separate } from '../../../runtime/count.ts'
import { printResult, warnResult } from '../../console/output.ts'

type Flags = { dryRun?: boolean; json?: true; rejects?: string | undefined }

/** `database`: its name, undefined while none was opened; `isNew`: the import has made it. */
export type ImportRun = Flags & { seconds: number; database: string | undefined; isNew: boolean }

/** Prints the counts, and makes the exit code 1 when records were rejected. */
export function reportImport(result: ImportResult, run: ImportRun): void {
  const { seconds, database, isNew, dryRun, json, rejects } = run
  // With --rejects - stdout holds rejected records alone.
  const print = rejects === '-' ? warnResult : printResult
  const { added, replayed, conflict: conflicting, rejected, skipped, reasons } = result
  const plantsPerSecond = Math.round((added + replayed + conflicting) / seconds)
  const [valid, invalid] = [added + replayed, rejected + conflicting]
  const counts = dryRun
    ? { added: 0, replayed: 0, conflicting: 0, rejected: invalid }
    : { added, replayed, conflicting, rejected }
  const shown = Object.entries(dryRun ? { valid, rejected: invalid } : counts)
  const list = shown.map(([name, number]) => `${separate(number)} ${name}`).join(', ')
  const speedText = `in ${seconds.toFixed(1)} s, ${count(plantsPerSecond, 'plant')}/s`
  const where = [database && `${dryRun ? 'compared with' : 'into'} ${database}`, isNew && 'made now']
  const parts = [`${list} ${speedText}`, where.filter(Boolean).join(', '), dryRun && 'nothing was added']
  const text = parts.filter(Boolean).join('; ')
  const speed = { seconds: Number(seconds.toFixed(3)), plantsPerSecond }
  print({ valid, ...counts, skipped, ...speed, database, made: isNew, reasons }, text, json)
  if (invalid > 0) process.exitCode = 1
}
