// Loaded before a test file: ends it when something keeps it alive for ten seconds after its last test. On SIGALRM tap fails
// the file, and names the handles.
import { isMainThread } from 'node:worker_threads'

const lingerMs = 10_000
const lookMs = 1000

/** What a test file starts may be given the same options. */
const isTestFile = isMainThread && /\.(test|slow)\.ts$/.test(process.argv[1] ?? '')

async function watch(): Promise<void> {
  // Not before the file itself has loaded it: tap ends when it is loaded and no test follows.
  const { t: tap } = await import('tap')
  let idleSince = performance.now()
  setInterval(() => {
    if (!tap.idle) idleSince = performance.now()
    else if (performance.now() - idleSince >= lingerMs) process.kill(process.pid, 'SIGALRM')
  }, lookMs).unref()
}

if (isTestFile) setTimeout(watch, lingerMs).unref()
