// The compose files in deploy/ run the image hardened, with settings that there are.
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { parse } from 'yaml'
import { settingEntries } from '../../src/config/settings.ts'

for (const file of ['compose.yaml', 'compose.sqlite.yaml'])
  test(`${file} runs that image, hardened, with settings that there are`, (t) => {
    const { services, volumes } = parse(
      readFileSync(new URL(`../../deploy/${file}`, import.meta.url), 'utf8'),
    )
    const { plants } = services
    t.match(plants, { image: 'plant-store:latest', read_only: true, cap_drop: ['ALL'] })
    const names = settingEntries.map(([, { name }]) => name)
    t.same(
      Object.keys(plants.environment).filter((name) => !names.includes(name)),
      [],
    )
    const mounted = Object.values<{ volumes?: string[] }>(services).flatMap(({ volumes = [] }) => volumes)
    t.same(
      mounted.map((one) => one.split(':')[0]),
      Object.keys(volumes),
    )
    t.end()
  })
