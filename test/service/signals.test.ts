// A signal reaches the service from outside, and again from whoever started it and has had it, too.
import { test } from 'tap'
import { signalGroup, starters } from './group.ts'

for (const starter of starters)
  test(`a signal that comes many times through ${starter[0]} is one end, in order`, (t) =>
    signalGroup(t, starter, 'SIGTERM', { often: true }))
