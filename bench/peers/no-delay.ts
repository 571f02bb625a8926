// Loaded into the service before itself: its batches do not wait for more requests. What that wait costs is what the
// service takes more without this. It says so in the log, so that the bench can tell that it was loaded.
import { registerHooks } from 'node:module'

const source = 'export class BatchDelay { noteWaiting() {} async wait() {} }'

registerHooks({
  load(url, context, next) {
    if (!url.endsWith('/src/plants/add/batch-delay.ts')) return next(url, context)
    console.error(JSON.stringify({ level: 30, msg: 'no delay' }))
    return { format: 'module', source, shortCircuit: true }
  },
})
