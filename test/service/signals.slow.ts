// A signal to the whole process group, as a terminal and a service manager send it: the launcher and npm pass on what the
// service has had already, and it ends in order every time.
import { test } from 'tap'
import { signalGroup, starters } from './group.ts'

const times = 10

for (const starter of starters)
  for (const signal of ['SIGINT', 'SIGTERM'] as const)
    test(`${times} times ${signal} to ${starter[0]} and all it started: what is half sent is answered`, async (t) => {
      for (let n = 0; n < times; n++) await signalGroup(t, starter, signal)
    })
