// A service behind the TLS proxies of deploy/proxies, whose configurations differ only in addresses and certificates.
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { type IncomingHttpHeaders, request as requestPlain } from 'node:http'
import { request } from 'node:https'
import { join } from 'node:path'
import { buffer } from 'node:stream/consumers'
import type { Test } from 'tap'
import { createDirectory } from '../support/engines.ts'
import { findPorts } from '../support/postgres.ts'
import { root, spawnProgram } from '../support/processes.ts'
import { findAdmin, startService } from '../support/service.ts'
import { findProgram, skipWithout, type Tool } from '../support/tools.ts'
import { until } from '../support/until.ts'

export const host = 'plants.example.org'

/** Starts a service with the settings that the proxies expect. */
export async function startBehind(t: Test, env: NodeJS.ProcessEnv) {
  const all = { TRUST_PROXY: '127.0.0.1', ADMIN_PORT: '0', ...env }
  const service = await startService(t, all, createDirectory(t))
  const adminPort = Number(new URL(await findAdmin(service)).port)
  return { ...service, port: Number(new URL(service.url).port), adminPort }
}

export type Behind = Awaited<ReturnType<typeof startBehind>>
/** `ca`: of the proxy's certificate; undefined: without TLS. */
export type Address = { port: number; ca?: string | undefined }
export type Proxy = {
  name: Tool
  skip: string | false
  /** Starts the proxy in front of a service, and of a second one that does not run. */
  start(t: Test, service: Pick<Behind, 'port' | 'adminPort'>): Promise<Address & { said: Said }>
}

type Place = { directory: string; port: number; nobody: number; certificate: Certificate }
type Certificate = { key: string; crt: string; pem: string; text: string }
type Said = (pattern: RegExp) => Promise<unknown>

/** `ready`: the log line after it has checked the services. */
function makeProxy(
  name: Tool,
  configure: (place: Place, service: Pick<Behind, 'port' | 'adminPort'>) => string[],
  ready?: RegExp,
): Proxy {
  return {
    name,
    // Only Linux has more loopback addresses by default.
    skip: process.platform === 'linux' ? skipWithout(name, 'openssl') : 'it needs 127.0.0.2',
    async start(t, service) {
      const directory = createDirectory(t)
      const certificate = makeCertificate(directory)
      const [port, nobody] = (await findPorts(2)) as [number, number]
      const args = configure({ directory, port, nobody, certificate }, service)
      const { logs: said } = spawnProgram(t, findProgram(name) as string, args)
      const address = { port, ca: certificate.text }
      const answers = () => ask('/openapi.json', address).then(({ status }) => status === 200)
      if (ready) await said(ready)
      await until(() => answers().catch(() => false))
      return { ...address, said }
    },
  }
}

const nginx = makeProxy('nginx', ({ directory, port, nobody, certificate }, service) => {
  const names = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi']
  for (const name of names) mkdirSync(join(directory, name))
  const folders = names.map((name) => `${name}_temp_path ${join(directory, name)};`).join(' ')
  const path = adapt('nginx.conf', directory, {
    'http {': `http { access_log off; ${folders}`,
    '127.0.0.1:3000': `127.0.0.1:${service.port}`,
    '# server 127.0.0.1:3001': `server 127.0.0.1:${nobody}`,
    'listen 443': `listen 127.0.0.1:${port}`,
    [`/etc/ssl/${host}.crt`]: certificate.crt,
    [`/etc/ssl/${host}.key`]: certificate.key,
  })
  const user = process.getuid?.() === 0 ? 'user root;' : ''
  const own = `daemon off; master_process off; error_log stderr; pid ${join(directory, 'pid')}; ${user}`
  return ['-p', directory, '-c', path, '-g', own]
})

const haproxy = makeProxy(
  'haproxy',
  ({ directory, port, nobody, certificate }, service) => {
    const path = adapt('haproxy.cfg', directory, {
      'bind :443': `bind 127.0.0.1:${port}`,
      [`/etc/haproxy/${host}.pem`]: certificate.pem,
      '127.0.0.1:3000 port 9090': `127.0.0.1:${service.port} port ${service.adminPort}`,
      '127.0.0.1:3001 port 9091': `127.0.0.1:${nobody} port ${nobody}`,
    })
    return ['-db', '-f', path]
  },
  /Server plant-store\/two is DOWN/,
)

const caddy = makeProxy(
  'caddy',
  ({ directory, port, nobody, certificate }, service) => {
    // Without the ports for plain HTTP and for administration.
    const site = `${host}:${port} {\n\tbind 127.0.0.1\n\ttls ${certificate.crt} ${certificate.key}`
    const path = adapt('Caddyfile', directory, {
      '\n{\n': '\n{\n\tadmin off\n\tauto_https off\n',
      [`\n${host} {`]: `\n${site}`,
      '127.0.0.1:3000': `127.0.0.1:${service.port} 127.0.0.3:${nobody}`,
      '# health_uri': 'health_uri',
      '# health_port 9090': `health_port ${service.adminPort}`,
      '# health_interval': 'health_interval',
    })
    return ['run', '--adapter', 'caddyfile', '--config', path]
  },
  /127\.0\.0\.3.*connection refused/,
)

export const proxies = { nginx, haproxy, caddy }

/** Writes a configuration with some texts replaced, each of which must exist. Returns its path. */
function adapt(name: string, directory: string, changes: Record<string, string>): string {
  let text = readFileSync(`${root}deploy/proxies/${name}`, 'utf8')
  for (const [from, to] of Object.entries(changes)) {
    if (!text.includes(from)) throw new Error(`${name} has no "${from}"`)
    text = text.replaceAll(from, to)
  }
  writeFileSync(join(directory, name), text)
  return join(directory, name)
}

/** Makes a certificate for a day; `pem` also has its key. */
function makeCertificate(directory: string): Certificate {
  const files = { key: join(directory, 'key'), crt: join(directory, 'crt'), pem: join(directory, 'pem') }
  const kind = '-x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 1'.split(' ')
  const name = ['-subj', `/CN=${host}`, '-addext', `subjectAltName=DNS:${host},IP:127.0.0.1`]
  const args = ['req', ...kind, ...name, '-keyout', files.key, '-out', files.crt]
  execFileSync('openssl', args, { stdio: 'pipe' })
  const text = readFileSync(files.crt, 'utf8')
  writeFileSync(files.pem, text + readFileSync(files.key, 'utf8'))
  return { ...files, text }
}

export type Asked = { status: number | undefined; headers: IncomingHttpHeaders; body: Buffer }
/** `midway`: called when the head of the response has arrived, before its body is read. */
type AskOptions = Address & {
  headers?: Record<string, string>
  body?: string
  from?: string
  midway?: () => Promise<unknown>
}

/** Sends a request on a new connection, from another address of this machine. */
export async function ask(path: string, options: AskOptions): Promise<Asked> {
  const { port, ca, headers = {}, body, from: localAddress = '127.0.0.2', midway } = options
  const { promise, resolve, reject } = Promise.withResolvers<Asked>()
  const method = body === undefined ? 'GET' : 'POST'
  const to = { host: '127.0.0.1', port, path, method, localAddress, agent: false }
  const given = { ...to, headers: { host, ...headers } }
  const sent = ca === undefined ? requestPlain(given) : request({ ...given, ca, servername: host })
  sent.on('response', async (response) => {
    const { statusCode: status, headers } = response
    await midway?.()
    buffer(response).then((body) => resolve({ status, headers, body }), reject)
  })
  sent.on('error', reject).end(body)
  return promise
}
