// Pages of a log without a service around them.
import type { Readable } from 'node:stream'
import pino from 'pino'
import { codecJobs } from '../../src/limits.ts'
import { Pages } from '../../src/plants/list/cache/pages.ts'
import { type LogRange, makeReadPools, RangeReader } from '../../src/plants/list/range.ts'
import { FairPool } from '../../src/runtime/fair-pool.ts'
import { type Meter, noMeter } from '../../src/runtime/meter.ts'
import type { PlantLog } from '../../src/store/engine.ts'

export function makePages(log: PlantLog, meter: Meter = noMeter): { pages: Pages; jobs: FairPool } {
  const jobs = new FairPool({ slots: codecJobs })
  const logger = pino({ level: 'silent' })
  return { jobs, pages: new Pages(new RangeReader(log, makeReadPools()), { jobs, logger, meter }) }
}

/** Reads a range as a client does that accepts no coding. */
export async function readPlain(pages: Pages, range: LogRange, owner = 'anyone'): Promise<Buffer | Readable> {
  const found = pages.findCached(range, ['identity'], owner)
  const { list } = found ?? (await pages.read(range, ['identity'], { owner, hold() {} }))
  return Buffer.isBuffer(list) ? list : list()
}
