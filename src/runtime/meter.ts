// Moved to src/metrics.ts: import it from there. This file goes when nothing imports it any more.
export { type Counts, type Meter, noMeter, type Observe, secondBounds } from '../metrics.ts'
