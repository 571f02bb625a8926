// Preloaded into a service: its wall clock is off by as many milliseconds as the file TEST_CLOCK_FILE says just now.
// The monotonic clock goes on as it does when somebody sets a machine's time.
import { readFileSync } from 'node:fs'

const now = Date.now
Date.now = () => now() + Number(readFileSync(process.env.TEST_CLOCK_FILE as string, 'utf8'))
