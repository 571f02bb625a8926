// The container image: built from this clone and run as the docs advise.
import tap, { type Test, test } from 'tap'
import { createDirectory } from '../support/engines.ts'
import { findPorts } from '../support/postgres.ts'
import { run } from '../support/processes.ts'
import { request, token } from '../support/service.ts'
import { skipWithout } from '../support/tools.ts'
import { copyClone } from './clone.ts'

const image = `plant-store-test:${process.pid}`
const options = { skip: skipWithout('buildah', 'podman', 'runc') }
/** Flags that podman needs inside another container, and those that the docs advise. */
const flags = [
  ...['--runtime', 'runc', '--cgroups=no-conmon', '--network=host'],
  ...['--ulimit', 'nofile=4096:4096', '--ulimit', 'nproc=4096:4096'],
  ...['--read-only', '--cap-drop=all', '--security-opt', 'no-new-privileges'],
]

async function podman(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await run('podman', args)
  if (code !== 0) throw new Error(`podman ${args.join(' ')}: ${stderr}`)
  return stdout.trim()
}

if (options.skip === false) tap.teardown(() => run('podman', ['rmi', '--force', image]))

/** Starts a container on a volume; both are removed when the test ends. Resolves when the service is ready. */
async function start(t: Test) {
  const name = `plant-store-test-${process.pid}`
  t.teardown(async () => {
    await run('podman', ['rm', '--force', '--volumes', name])
    await run('podman', ['volume', 'rm', '--force', name])
  })
  const [ADMIN_PORT] = await findPorts(1)
  const settings = { HOST: '127.0.0.1', PORT: '0', ADMIN_PORT, ACCESS_TOKENS: token }
  const env = Object.entries(settings).flatMap(([key, value]) => ['--env', `${key}=${value}`])
  await podman('run', '--detach', '--name', name, '--volume', `${name}:/data`, ...flags, ...env, image)
  return { name, url: await findUrl(name) }
}

/** `starts`: the number of starts of the container; its log has the lines of each start. */
async function findUrl(name: string, starts = 1): Promise<string> {
  for (;;) {
    const { stdout, stderr } = await run('podman', ['logs', name])
    const urls = [...stdout.matchAll(/listening on (\S+)\n/g)].map(([, url]) => url as string)
    if (urls.length === starts) return urls.at(-1) as string
    if ((await podman('inspect', '--format', '{{.State.Running}}', name)) !== 'true') throw new Error(stderr)
  }
}

test('npm run image builds an image of less than 200 MiB', options, async (t) => {
  const clone = createDirectory(t)
  copyClone(clone, true)
  const line = `umask 077; chmod -R go= .; npm run image -- ${image}`
  const { code, stderr } = await run('sh', ['-c', line], { cwd: clone })
  t.equal(code, 0, stderr)
  const bytes = Number(await podman('image', 'inspect', '--format', '{{.Size}}', image))
  const labels = JSON.parse(await podman('image', 'inspect', '--format', '{{json .Labels}}', image))
  t.match(labels, { 'org.opencontainers.image.licenses': 'MIT', 'org.opencontainers.image.version': /^\d/ })
  t.ok(bytes < 200 * 2 ** 20, `${Math.round(bytes / 2 ** 20)} MiB`)
})

test('the image runs on a read-only root, with no privileges, capabilities or shell', options, async (t) => {
  const { name, url } = await start(t)
  const alder = { name: 'Black alder', tag: 'Alnus glutinosa' }
  t.equal((await request(`${url}/plants`, { body: alder })).status, 200)
  t.same((await request(`${url}/plants`)).json(), [alder])
  t.equal((await request(`${url}/docs`)).status, 200)
  t.match(await podman('top', name, 'huser', 'pid', 'capeff'), /\n10001 +1 +none$/)
  t.match(await podman('exec', name, 'plant-store', 'verify'), /no faults/)
  t.equal((await run('podman', ['exec', name, 'sh', '-c', 'true'])).code, 127)
  await podman('healthcheck', 'run', name)
  await podman('stop', '--time', '60', name)
  t.equal(await podman('inspect', '--format', '{{.State.ExitCode}}', name), '0')
  await podman('start', name)
  t.same((await request(`${await findUrl(name, 2)}/plants`)).json(), [alder], 'the plant is in the volume')
})
