// deploy/plant-store.service: systemd accepts every line, and rates its exposure low.
import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { test } from 'tap'
import { run } from '../support/processes.ts'
import { skipWithout } from '../support/tools.ts'

const unit = fileURLToPath(new URL('../../deploy/plant-store.service', import.meta.url))
const maxExposure = 1.5
const options = { skip: skipWithout('systemd-analyze') }

test('systemd accepts the unit without a warning', options, async (t) => {
  // Unknown keys are only warnings on stderr.
  t.same(await run('systemd-analyze', ['verify', unit]), { code: 0, stdout: '', stderr: '' })
})

test('systemd rates the exposure of the unit low', options, async (t) => {
  const { code, stdout } = await run('systemd-analyze', ['security', '--offline=true', '--no-pager', unit])
  t.equal(code, 0)
  const [, exposure] = /Overall exposure level for plant-store\.service: ([\d.]+)/.exec(stdout) ?? []
  t.ok(Number(exposure) <= maxExposure, `${exposure}`)
})

test('only the user of the unit can read its data', async (t) => {
  const lines = readFileSync(unit, 'utf8').split('\n')
  for (const line of ['DynamicUser=yes', 'StateDirectory=plant-store', 'StateDirectoryMode=0700'])
    t.ok(lines.includes(line), line)
  const [, folder] = /^Environment=DATABASE_URL=file:(\S+)\/[^/]+$/m.exec(lines.join('\n')) ?? []
  t.equal(folder, '/var/lib/plant-store')
})
