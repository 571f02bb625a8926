// Loaded into a command before itself: when it ends, it tells the bench on descriptor 3 what it used.
import { writeSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/** Threads load this, too; the figures are those of the whole process. */
if (isMainThread)
  process.on('exit', () => {
    const { maxRSS, userCPUTime, systemCPUTime } = process.resourceUsage()
    writeSync(3, JSON.stringify({ peakMiB: maxRSS / 1024, cpuUs: userCPUTime + systemCPUTime }))
  })
