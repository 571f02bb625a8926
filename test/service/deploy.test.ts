// The files in deploy/: Compose and Kubernetes run the image hardened, with existing settings; systemd accepts every line of
// the unit.
import { readFileSync } from 'node:fs'
import { test } from 'tap'
import { parse, parseAllDocuments } from 'yaml'
import { settingRows } from '../../src/settings.ts'
import { root, run } from '../support/processes.ts'
import { skipWithout } from '../support/tools.ts'

/** The longest shutdown. */
const stopMs = 10_000

const names = settingRows.flatMap(({ name, hasFile }) => (hasFile ? [name, `${name}_FILE`] : [name]))
const isUnknown = (setting: string) => !names.includes(setting)

const read = (file: string) => readFileSync(`${root}deploy/${file}`, 'utf8')

const [, settings = ''] = /^ENV (.+)$/m.exec(read('Containerfile')) ?? []
const image = Object.fromEntries(settings.split(' ').map((pair) => pair.split('=')))
/** Finds settings that are set together with their `_FILE`, which the service refuses. */
const findDoubles = (environment: Record<string, string>) => {
  const all = { ...image, ...environment }
  return Object.keys(all).filter((name) => all[name] && all[`${name}_FILE`])
}

type Service = { environment: Record<string, string>; secrets?: string[] }

for (const file of ['compose.yaml', 'compose.sqlite.yaml'])
  test(`${file} runs the image, hardened, with existing settings`, async (t) => {
    const { services, volumes, secrets = {} } = parse(read(file))
    const { plants } = services
    t.match(plants, { image: 'plant-store:latest', read_only: true, cap_drop: ['ALL'] })
    t.same(Object.keys(plants.environment).filter(isUnknown), [])
    t.same(findDoubles(plants.environment), [])
    const mounts = Object.values<{ volumes?: string[] }>(services).flatMap(({ volumes = [] }) => volumes)
    const mounted = mounts.map((one) => one.split(':')[0])
    t.same(mounted, Object.keys(volumes))
    const used = Object.values<{ secrets?: string[] }>(services).flatMap((service) => service.secrets ?? [])
    t.same([...new Set(used)].sort(), Object.keys(secrets).sort())
    for (const { environment, secrets: own = [] } of Object.values<Service>(services))
      for (const [name, value] of Object.entries(environment)) {
        if (name.endsWith('_FILE')) t.ok(own.includes(value.replace('/run/secrets/', '')), name)
        t.notMatch(value, /:\/\/[^/]*:[^/]*@/, `no password in ${name}`)
      }
  })

const { version } = JSON.parse(readFileSync(`${root}package.json`, 'utf8'))

for (const file of ['postgres.yaml', 'sqlite.yaml'])
  test(`kubernetes/${file} runs the image of this version, hardened, with probes and enough time to drain`, async (t) => {
    const { spec } = parseAllDocuments(read(`kubernetes/${file}`))
      .map((one) => one.toJS())
      .find(({ kind }) => /^(Deployment|StatefulSet)$/.test(kind)).spec.template
    const [container] = spec.containers
    t.equal(container.image, `plant-store:${version}`)
    t.match(container, {
      livenessProbe: { httpGet: { path: '/livez', port: 'admin' } },
      // With /readyz, an outage of the database would leave clients without lists, and without a 503.
      readinessProbe: { tcpSocket: { port: 'http' } },
      securityContext: {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
    })
    t.match(spec, { enableServiceLinks: false, securityContext: { runAsNonRoot: true, runAsUser: 10001 } })
    const env: { name: string; value?: string }[] = container.env ?? []
    t.same(env.map(({ name }) => name).filter(isUnknown), [])
    t.same(findDoubles(Object.fromEntries(env.map(({ name, value = '' }) => [name, value]))), [])
    for (const { name, value = '' } of env)
      if (name.endsWith('_FILE'))
        t.ok(container.volumeMounts.some((mount: { mountPath: string }) => value.startsWith(mount.mountPath)))
    const drain = Number(env.find(({ name }) => name === 'DRAIN_DELAY')?.value ?? 0)
    t.ok(spec.terminationGracePeriodSeconds * 1000 > drain * 1000 + stopMs)
  })

const unit = `${root}deploy/plant-store.service`

test('systemd accepts the unit without a warning', { skip: skipWithout('systemd-analyze') }, async (t) => {
  // Unknown keys are only warnings on stderr.
  t.same(await run('systemd-analyze', ['verify', unit]), { code: 0, stdout: '', stderr: '' })
})

test('only the user of the unit can read its data', async (t) => {
  const lines = read('plant-store.service').split('\n')
  const rights = ['StateDirectory=plant-store', 'StateDirectoryMode=0700']
  for (const line of ['DynamicUser=yes', 'User=plant-store', ...rights]) t.ok(lines.includes(line), line)
  const [, folder] = /^Environment=DATABASE_URL=file:(\S+)\/[^/]+$/m.exec(lines.join('\n')) ?? []
  t.equal(folder, '/var/lib/plant-store')
})
