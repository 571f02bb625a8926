// deploy/plant-store.service: systemd understands every line of it, and finds little that it leaves open.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { run } from '../support/processes.ts'
import { skipWithout } from '../support/tools.ts'

const unit = fileURLToPath(new URL('../../deploy/plant-store.service', import.meta.url))
const maxExposure = 1.5
const options = { skip: skipWithout('systemd-analyze') }

test('the unit is understood without a word', options, async (t) => {
  // Keys that are not known are words on stderr, and no failure.
  t.same(await run('systemd-analyze', ['verify', unit]), { code: 0, stdout: '', stderr: '' })
})

test('its exposure is small', options, async (t) => {
  const { code, stdout } = await run('systemd-analyze', ['security', '--offline=true', '--no-pager', unit])
  t.equal(code, 0)
  const [, exposure] = /Overall exposure level for plant-store\.service: ([\d.]+)/.exec(stdout) ?? []
  t.ok(Number(exposure) <= maxExposure, `${exposure}`)
})

test('a signal to stop goes to one process, not to the group', (t) => {
  t.match(readFileSync(unit, 'utf8'), /^KillMode=mixed$/m)
  t.end()
})

test('its data is for its user alone, who exists only while it runs', (t) => {
  const lines = readFileSync(unit, 'utf8').split('\n')
  for (const line of ['DynamicUser=yes', 'StateDirectory=plant-store', 'StateDirectoryMode=0700'])
    t.ok(lines.includes(line), line)
  const [, folder] = /^Environment=DATABASE_URL=file:(\S+)\/[^/]+$/m.exec(lines.join('\n')) ?? []
  t.equal(folder, '/var/lib/plant-store')
  t.end()
})
