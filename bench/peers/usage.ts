// Loaded into a command before itself: when it ends, it tells the bench on descriptor 3 what it used.
import { existsSync, readFileSync, writeSync } from 'node:fs'
import { isMainThread } from 'node:worker_threads'

/** Threads load this, too; the figures are those of the whole process. */
if (isMainThread)
  process.on('exit', () => {
    const { userCPUTime, systemCPUTime } = process.resourceUsage()
    writeSync(3, JSON.stringify({ peakMiB: readPeakMiB(), cpuUs: userCPUTime + systemCPUTime }))
  })

const statusFile = '/proc/self/status'

/** The kernel's high-water mark. `maxRSS` begins at that of the parent process, so it hides what is less. */
function readPeakMiB(): number {
  if (!existsSync(statusFile)) return Number.NaN
  const [, kiB] = /^VmHWM:\s+(\d+) kB/m.exec(readFileSync(statusFile, 'utf8')) ?? []
  return Number(kiB) / 1024
}
