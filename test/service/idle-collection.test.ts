// Memory is given back once a burst is over, and what was still in use at the first collection soon after it.
import { mock } from 'node:test'
import { test } from 'tap'
import { collectWhenIdle } from '../../src/service/idle-collection.ts'
import { until } from '../support/until.ts'

const lookMs = 2000
const burstBytes = 128 * 2 ** 20

test('objects in use during a collection in a burst are collected once they are garbage', async (t) => {
  mock.timers.enable({ apis: ['setInterval'] })
  t.teardown(() => mock.timers.reset())
  const before = process.memoryUsage().arrayBuffers
  const collection = collectWhenIdle(() => true)
  t.teardown(() => collection.close())
  const grown = () => process.memoryUsage().arrayBuffers - before
  const burst: Buffer[] = []
  // The frame of the test itself would keep hold of it.
  const fill = () => void burst.push(Buffer.alloc(burstBytes))
  fill()
  mock.timers.tick(lookMs)
  t.ok(grown() >= burstBytes / 2, 'it is in use')
  burst.length = 0
  // V8 lets go of buffers in a thread of its own.
  await until(() => {
    mock.timers.tick(lookMs)
    return grown() < burstBytes / 2
  })
  t.pass('it is given back')
})
