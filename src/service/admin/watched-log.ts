// Metrics of a log: its head, its commits, and the space on its disk. Values that the store does not return in time are
// left out.
import { statfs } from 'node:fs/promises'
import { Gauge, Histogram, type Registry } from 'prom-client'
import { gaugeMs } from '../../limits.ts'
import type { Checkpoint, Entry, PlantLog, Store } from '../../store/store.ts'
import { makeInTime } from './in-time.ts'
import { secondBounds } from './thread-metrics.ts'

const plantBounds = [1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096]

/** Wraps a log to measure its commits. */
export function watchLog(log: PlantLog, registry: Registry): PlantLog {
  const registers = [registry]
  const batches = new Histogram({
    name: 'plant_store_batch_plants',
    help: 'Plants in a batch.',
    buckets: plantBounds,
    registers,
  })
  const commits = new Histogram({
    name: 'plant_store_commit_duration_seconds',
    help: 'Time from handing a batch to the database to its outcome.',
    labelNames: ['outcome'],
    buckets: secondBounds,
    registers,
  })
  for (const outcome of ['committed', 'failed']) commits.zero({ outcome })
  return {
    head: () => log.head(),
    read: (after, last, epoch) => log.read(after, last, epoch),
    async append(entries: Entry[], deadlineMs?: number, mark?: Checkpoint) {
      batches.observe(entries.length)
      const startMs = performance.now()
      let outcome = 'failed'
      try {
        const outcomes = await log.append(entries, deadlineMs, mark)
        outcome = 'committed'
        return outcomes
      } finally {
        commits.observe({ outcome }, (performance.now() - startMs) / 1000)
      }
    },
  }
}

/** Publishes the head of a store's log, its unsafe settings, and the disk of its file, if it has one. */
export function showStore(
  { log, unsafeSettings = async () => [] }: Store,
  registry: Registry,
  file?: string,
): void {
  const readHead = makeInTime(() => log.head(), gaugeMs)
  const findUnsafe = makeInTime(unsafeSettings, gaugeMs)
  const registers = [registry]
  function show(name: string, help: string, read: () => Promise<number | undefined>): void {
    new Gauge({
      name,
      help,
      registers,
      async collect() {
        const value = await read()
        if (value === undefined) this.remove()
        else this.set(value)
      },
    })
  }
  show(
    'plant_store_head_position',
    'How many plants are in the log.',
    async () => (await readHead())?.position,
  )
  show(
    'plant_store_unsafe_settings',
    'Settings of the database server that protect acknowledged plants and are off; the log names them at the start.',
    async () => (await findUnsafe())?.length,
  )
  if (file !== undefined) {
    const disk = makeInTime(() => statfs(file), gaugeMs)
    const toBytes = (blocks: 'bavail' | 'blocks') => async () => {
      const found = await disk()
      return found && found[blocks] * found.bsize
    }
    show('plant_store_disk_free_bytes', "Room left on the disk of the database's file.", toBytes('bavail'))
    show('plant_store_disk_bytes', "Size of the disk of the database's file.", toBytes('blocks'))
  }
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
