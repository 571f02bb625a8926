// A log of plants as Prometheus sees it: where it ends, and how its commits go. What has to be asked of the store is left
// out when it does not come in time.
import { Gauge, type Registry } from 'prom-client'
import type { Entry, Mark, PlantLog } from '../store/store.ts'
import { Histogram } from './histogram.ts'
import { makeInTime } from './in-time.ts'
import { secondBounds } from './thread-metrics.ts'

const headMs = 500
const plantBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]

/** A log that is as `log`, with its commits measured. */
export function watchLog(log: PlantLog, registry: Registry): PlantLog {
  const batches = new Histogram(registry, {
    name: 'plant_store_batch_plants',
    help: 'Plants in a batch.',
    bounds: plantBounds,
  }).addSeries()
  const commits = new Histogram(registry, {
    name: 'plant_store_commit_duration_seconds',
    help: 'Time from handing a batch to the database to its word.',
    bounds: secondBounds,
  })
  const committed = commits.addSeries({ outcome: 'committed' })
  const failed = commits.addSeries({ outcome: 'failed' })
  return {
    head: () => log.head(),
    read: (after, last, epoch) => log.read(after, last, epoch),
    async append(entries: Entry[], deadlineMs?: number, mark?: Mark) {
      batches.observe(entries.length)
      const startMs = performance.now()
      let series = failed
      try {
        const outcomes = await log.append(entries, deadlineMs, mark)
        series = committed
        return outcomes
      } finally {
        series.observe((performance.now() - startMs) / 1000)
      }
    },
  }
}

/** Shows where a log ends. */
export function showHead(log: PlantLog, registry: Registry): void {
  const readHead = makeInTime(() => log.head(), headMs)
  const registers = [registry]
  new Gauge({
    name: 'plant_store_head_position',
    help: 'How many plants are in the log.',
    registers,
    async collect() {
      const head = await readHead()
      if (head) this.set(head.position)
      else this.remove()
    },
  })
  new Gauge({
    name: 'plant_store_epoch_info',
    help: 'The latest epoch of the log.',
    labelNames: ['epoch'],
    registers,
    async collect() {
      const head = await readHead()
      this.reset()
      if (head) this.set({ epoch: head.epochs.latest }, 1)
    },
  })
}
