// Moved to src/outage.ts: import it from there. This file goes when nothing imports it any more.
export { Outage, type OutageWords } from '../outage.ts'
