// Somebody who uses a service while others misuse it, and how much memory the service takes meanwhile.
import { readFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

const askMs = 20
const lookMs = 20

export type Experience = { waitsMs: number[]; statuses: Set<number>; peakBytes: number }

/** Resident memory of a process, in bytes (proc_pid_status(5)); 0 where there is no /proc. */
export function residentBytes(pid: number): number {
  try {
    return Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))?.[1]) * 1024
  } catch {
    return 0
  }
}

type Neighbour = { url: string; token: string; pid: number; after: number }

/**
 * Asks for `url` over and over while `others` are at it and `after` times after that, and looks at the memory of a
 * process. Each wait counts, with whatever status it ended.
 */
export async function experience(
  { url, token, pid, after }: Neighbour,
  others: () => Promise<void>,
): Promise<Experience> {
  const seen: Experience = { waitsMs: [], statuses: new Set(), peakBytes: 0 }
  let last = Number.POSITIVE_INFINITY
  const looking = setInterval(() => {
    seen.peakBytes = Math.max(seen.peakBytes, residentBytes(pid))
  }, lookMs)
  const asking = (async () => {
    while (seen.waitsMs.length < last) {
      const startMs = performance.now()
      const answer = await fetch(url, { headers: { authorization: `Bearer ${token}` } })
      await answer.text()
      seen.waitsMs.push(performance.now() - startMs)
      seen.statuses.add(answer.status)
      await sleep(askMs)
    }
  })()
  try {
    await others()
  } finally {
    last = seen.waitsMs.length + after
    await asking
    clearInterval(looking)
  }
  return seen
}

/** The wait that so many of a hundred do not exceed. */
export function percentile(waitsMs: number[], percent: number): number {
  const sorted = [...waitsMs].sort((a, b) => a - b)
  return sorted[Math.min(sorted.length - 1, Math.floor((sorted.length * percent) / 100))] ?? 0
}
